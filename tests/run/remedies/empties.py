# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX that need at least one element, of sizes that may be 0."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from .case import Case, Numbers, value_of
from .traced import VALUES, compiled


def rolled(x: Any) -> Any:
    """A function that divides by the size."""
    return jnp.roll(x, 1)


class SumsOfEmpty(Case):
    error = Exception
    remedy = (
        r"^[^ ]*empties\.py:\d+: JAX cannot decide [^:]*: the function needs at least one element there: state it by "
        r"constraints=(\(\"n >= 2\",\)) \["
    )
    function: ClassVar[Callable[[Any], Any]] = staticmethod(lambda x: jnp.cumsum(x))

    def provoke(self) -> Any:
        return compiled(self.function, ("n - 1", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        function = compiled(self.function, ("n - 1", "float32"), constraints=value_of(found[1]))
        return function(VALUES), type(self).function(jnp.asarray(VALUES))


class ScanOfEmpty(SumsOfEmpty):
    function = staticmethod(lambda x: jax.lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x)[1])


class MapOfEmpty(SumsOfEmpty):
    function = staticmethod(lambda x: jax.lax.map(lambda v: 2 * v, x))


class OrderOfEmpty(SumsOfEmpty):
    function = staticmethod(lambda x: x[jnp.argsort(x)])


class LargestOfEmpty(SumsOfEmpty):
    function = staticmethod(lambda x: jnp.argmax(x))


class RollOfEmpty(SumsOfEmpty):
    remedy = (
        r"^[^ ]*empties\.py:\d+: JAX cannot decide [^:]*: the function divides by a size that may be 0: state "
        r"constraints=(\(\"n >= 2\",\)) \["
    )
    function = staticmethod(rolled)
