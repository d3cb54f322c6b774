# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX that refuse sizes which are symbols."""

from __future__ import annotations

import operator
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc
from shlo_disc.errors import ProgramError

from .case import Case, Numbers
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


class LoweredBySize(ProgramOfEachSize):
    """JAX raises its error while it lowers the operation."""

    function = staticmethod(lambda x: jnp.trace(jax.scipy.linalg.hessenberg(jnp.outer(x, x))))
    remedy = r"hessenberg of JAX cannot be traced.* shlo_disc\.jit with (compile_once)=False"
    expected = np.float32(np.sum(VALUES**2))


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


class GradientOfProduct(Case):
    error = ProgramError
    remedy = (
        r"multiply row by row, by (jax\.lax\.scan\(lambda carry, row: \(carry \* row, None\), "
        r"jax\.numpy\.ones\(\(x\[:, :1\]\)\.shape\[1:\]\), x\[:, :1\]\)\[0\]), with \.ravel\(\)"
    )

    def provoke(self) -> Any:
        return shlo_disc.compile(jax.grad(lambda x: jnp.prod(x[:, :1])), args=(("n, d", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        rows = eval(found[1].replace("x[:, :1]", "x"), {"jax": jax, "x": jnp.asarray(ROWS[:, 0])})  # noqa: S307
        np.testing.assert_allclose(rows, ROWS[:, 0].prod())

        def product(x: Any) -> Any:
            x = x[:, :1].ravel()
            return jax.lax.scan(lambda carry, row: (carry * row, None), jnp.ones(x.shape[1:]), x)[0]

        program = shlo_disc.compile(jax.grad(product), args=(("n, d", "float32"),))
        return program(ROWS), jax.grad(lambda x: jnp.prod(x[:, :1]))(ROWS)


ROWS = np.array([[1, 2], [3, 4], [0.5, 6]], np.float32)


class OutcomesOfLinspace(Case):
    error = ProgramError
    remedy = r'constraints=\("n >= 2",\) .*, or give shlo_disc\.jit (compile_once=False)'

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: x * jnp.linspace(0, 1, x.shape[0]), args=(("n", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] == "compile_once=False"
        program = shlo_disc.jit(lambda x: x * jnp.linspace(0, 1, x.shape[0]), dynamic="n", compile_once=False)
        np.testing.assert_array_equal(program(np.ones(1, np.float32)), [0])
        return program(np.ones(3, np.float32)), [0, 0.5, 1]


class NumberHeldBack(Case):
    error = ProgramError
    remedy = r"holds this error back.* ask (jax\.export\.is_symbolic_dim)\(size\) where .* (compile_once=False) comp"

    def provoke(self) -> Any:
        def ones(x: Any) -> Any:
            try:
                n = operator.index(x.shape[0])
            except TypeError:
                n = x.shape[0]
            return x + jnp.ones(n)

        return shlo_disc.compile(ones, args=(("n", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        def ones(x: Any) -> Any:
            n = x.shape[0]
            return x + jnp.ones(n if jax.export.is_symbolic_dim(n) else operator.index(n))

        return shlo_disc.compile(ones, args=(("n", "float32"),))(ROWS[:, 0]), ROWS[:, 0] + 1
