# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX that refuse sizes which are symbols."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc

from .case import Numbers
from .traced import VALUES, compiled
from .wanted_numbers import KEY, NumberCase


class MirroredPadding(NumberCase):
    function = staticmethod(lambda x: jnp.pad(x, (2, 1), mode="reflect"))
    remedy = r"jax\.numpy\.pad cannot .* the axis is longer: constraints=\(\"(n >= 3)\",\)"
    expected = np.pad(VALUES, (2, 1), mode="reflect")

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(self.function, constraints=(found[1],))(VALUES), self.expected


class WrappedPadding(NumberCase):
    function = staticmethod(lambda x: jnp.pad(x, (2, 1), mode="wrap"))
    remedy = r"to have 2 before and 1 after x, write (x\[jax.*\]\])"
    expected = np.pad(VALUES, (2, 1), mode="wrap")


class StepsOfFractions(NumberCase):
    function = staticmethod(lambda x: jnp.arange(0, x.shape[0], 0.5))
    remedy = r"write (jax\.numpy\.arange\(2 \* size\) / 2) in place of"
    expected = np.arange(0, 6, 0.5)

    def text(self, found: re.Match[str]) -> str:
        return found[1].replace("size", "x.shape[0]")


class ProgramOfEachSize(NumberCase):
    """A function that has a program for the sizes of each call, as its message says."""

    function = staticmethod(lambda x: jax.lax.associative_scan(jnp.add, x))
    remedy = r"jax\.lax\.associative_scan cannot be traced .* shlo_disc\.jit with (compile_once)=False compiles"
    expected = np.cumsum(VALUES)

    def follow(self, found: re.Match[str]) -> Numbers:
        jitted = shlo_disc.jit(self.function, dynamic="n", **{found[1]: False})
        return jitted(VALUES), self.expected


class ShuffledBySize(ProgramOfEachSize):
    function = staticmethod(lambda x: jnp.sort(jax.random.permutation(KEY, x)))
    remedy = r"jax\.random\.permutation cannot be traced .* shlo_disc\.jit with (compile_once)=False compiles"
    expected = np.sort(VALUES)


class SymbolicParts(ProgramOfEachSize):
    function = staticmethod(lambda x: jnp.array_split(x, jax.core.min_dim(3, x.shape[0]))[0])
    remedy = r"jax\.vmap\(function\)\(x\) .* shlo_disc\.jit with (compile_once)=False compiles"
    expected = VALUES[:2]


class PartsByMinimum(ProgramOfEachSize):
    function = staticmethod(lambda x: jnp.array_split(x, min(3, x.shape[0]))[0])
    remedy = r"not a number as range and a count of parts need.* give shlo_disc\.jit (compile_once)=False"
    expected = VALUES[:2]


def aligned(x: Any) -> Any:
    """x by the rest of its size, computed on bits."""
    n = x.shape[0]
    n &= 3
    return x * n


def doubled(x: Any) -> Any:
    """x by twice its size, computed on bits."""
    n = x.shape[0]
    n <<= 1
    return x * n


class AssignedBits(NumberCase):
    function = staticmethod(aligned)
    remedy = r"write n (% 4) in place of n & 3"
    expected = 2

    def text(self, found: re.Match[str]) -> str:
        return f"x.shape[0] {found[1]}"


class AssignedShift(AssignedBits):
    function = staticmethod(doubled)
    remedy = r"write n (\* 2) in place of n << 1"
    expected = 12


class MaximumOfNumPy(NumberCase):
    function = staticmethod(lambda x: x * np.maximum(x.shape[0], 7))
    remedy = r"or (jax\.core\.max_dim\(n, 7\)), which return a size"
    expected = 7

    def text(self, found: re.Match[str]) -> str:
        return found[1].replace("n,", "x.shape[0],")


class RepeatedList(NumberCase):
    function = staticmethod(lambda x: x * jnp.array([2.0] * x.shape[0]))
    remedy = r"a list that is repeated cannot .* write (jax\.numpy\.full\(x\.shape\[0\], 2\.0\)) in place"
    expected = np.full(6, 2.0)


class TriangleOfNumPy(NumberCase):
    function = staticmethod(lambda x: (x[:, None] * x)[np.tril_indices(x.shape[0])])
    remedy = r"write (jax\.numpy\.tril_indices) in place of np\.tril_indices"
    expected = (VALUES[:, None] * VALUES)[np.tril_indices(6)]

    def text(self, found: re.Match[str]) -> str:
        return f"(x[:, None] * x)[{found[1]}(x.shape[0])]"


class DiagonalIndices(NumberCase):
    function = staticmethod(lambda x: (x[:, None] * x)[jnp.diag_indices(x.shape[0])])
    remedy = r"write (\(i, i\)) with i = (jax\.numpy\.arange\(x\.shape\[0\]\))"
    expected = VALUES * VALUES

    def text(self, found: re.Match[str]) -> str:
        return f"(lambda x, i: (x[:, None] * x)[{found[1]}])(x, {found[2]})"
