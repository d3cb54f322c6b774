# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of Python, of NumPy and of arrays in calls of functions that were compiled for another kind."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import RecompileError

from .case import Case, Numbers, add_one


class NumberForArray(Case):
    """A number of one kind in the first call, and of another in the second, of the same value."""

    error = RecompileError
    first: ClassVar[Any] = 2.0
    second: ClassVar[Any] = np.float32(3)
    remedy = r"a NumPy number of float32, .* a Python number \(float32\)\..* pass (float\(args\[0\]\))"

    def provoke(self) -> Any:
        function = shlo_disc.jit(add_one)
        return function(self.first), function(self.second)

    def follow(self, found: re.Match[str]) -> Numbers:
        function = shlo_disc.jit(add_one)
        function(self.first)
        return function(eval(found[1], {"numpy": np, "args": [self.second]})), self.second + 1  # noqa: S307


class ArrayForNumber(NumberForArray):
    first, second = np.float32(2), 3.0
    remedy = r"is a Python float, and .* for an array\. .* pass (numpy\.float32\(args\[0\]\))"


class WeakArrayForArray(NumberForArray):
    first, second = np.ones(2, np.float32), jax.numpy.full(2, 0.5)
    remedy = r"an array of float32, weakly typed, .* for an array\. .* pass (args\[0\]\.astype\('float32'\))"


class IntegerForFraction(NumberForArray):
    first, second = 2.0, 3
    remedy = r"is a Python int, and .* a Python number \(float32\)\. .* pass (float\(args\[0\]\))"


class ArrayForWeakArray(NumberForArray):
    first, second = jax.numpy.full(3, 1.5), np.ones(3, np.float32)
    remedy = r"pass an array without a stated dtype, such as (jnp\.full\(3, 0\.5\))"

    def follow(self, found: re.Match[str]) -> Numbers:
        function = shlo_disc.jit(add_one)
        function(self.first)
        return function(eval(found[1], {"jnp": jax.numpy})), [1.5] * 3  # noqa: S307
