# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices and elements of tables that a function has, such as the embeddings of positions."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc
import shlo_disc.numpy
from shlo_disc.errors import ProgramError, ShapeError

from .case import Case, Numbers, value_of

TABLE = np.arange(80, dtype=np.float32).reshape(20, 4)
X = np.ones((3, 4), np.float32)


class _Cut(Case):
    """A table that is cut to the size of an argument, and a program of each front that states how long it is."""

    error = ProgramError
    remedy = r"state constraints=(\(.*?\)) in shlo_disc\.compile or shlo_disc\.jit"
    args: ClassVar[tuple[str, ...]] = ("n, 4",)
    inputs: ClassVar[tuple[Any, ...]] = (X,)
    too_long: ClassVar[tuple[Any, ...]] = (np.ones((21, 4), np.float32),)

    @staticmethod
    @abstractmethod
    def function(x: Any) -> Any:
        """The function to compile."""

    def provoke(self) -> Any:
        return shlo_disc.compile(self.function, args=[(shape, "float32") for shape in self.args])

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = value_of(found[1])
        program = shlo_disc.compile(
            self.function, args=[(shape, "float32") for shape in self.args], constraints=constraints
        )
        with pytest.raises(ShapeError):
            program(*self.too_long)
        jitted = shlo_disc.jit(self.function, dynamic=self.args, constraints=constraints)
        expected = np.asarray(self.function(*self.inputs))
        return [program(*self.inputs), jitted(*self.inputs)], [expected, expected]


class RowsOfTable(_Cut):
    @staticmethod
    def function(x: Any) -> Any:
        return x + jnp.asarray(TABLE)[: x.shape[0]]


class RowsAfterTheFirst(_Cut):
    @staticmethod
    def function(x: Any) -> Any:
        return x + jnp.asarray(TABLE)[2 : x.shape[0] + 2]


class LastRows(_Cut):
    @staticmethod
    def function(x: Any) -> Any:
        return x + jnp.asarray(TABLE)[-x.shape[0] :]


class SquareMask(_Cut):
    args = ("n, n",)
    inputs = (np.ones((3, 3), np.float32),)
    too_long = (np.ones((21, 21), np.float32),)

    @staticmethod
    def function(x: Any) -> Any:
        n = x.shape[0]
        return jnp.where(jnp.tril(jnp.ones((20, 20), bool))[:n, :n], x, 0)


class ContractedRows(_Cut):
    args = ("b, n",)
    inputs = (np.ones((2, 3), np.float32),)
    too_long = (np.ones((2, 21), np.float32),)

    @staticmethod
    def function(x: Any) -> Any:
        return jnp.einsum("bn,nd->bd", x, jnp.asarray(TABLE)[: x.shape[1]])


class RowsOfBuffer(_Cut):
    @staticmethod
    def function(x: Any) -> Any:
        return jnp.asarray(TABLE).at[: x.shape[0]].set(x)


class RowsOfNumPy(Case):
    error = ProgramError
    remedy = r"write (jax\.numpy\.asarray\(TABLE\)\[:n, :4\]), .* constraints=(\(.*?\)) \["

    def provoke(self) -> Any:
        def embedded(x: Any) -> Any:
            n = x.shape[0]
            return x + TABLE[:n, :4]

        return shlo_disc.compile(embedded, args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] == "jax.numpy.asarray(TABLE)[:n, :4]"
        program = shlo_disc.compile(
            lambda x: x + jnp.asarray(TABLE)[: x.shape[0], :4],
            args=(("n, 4", "float32"),),
            constraints=value_of(found[2]),
        )
        return program(X), X + TABLE[:3]


class ElementOfNumPy(Case):
    error = ProgramError
    remedy = r"write jax\.numpy\.asarray\(TABLE\)\[jax\.numpy\.asarray\((x\.shape\[0\] - 1)\)\]"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: x + TABLE[x.shape[0] - 1], args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        program = shlo_disc.compile(
            lambda x: x + jnp.asarray(TABLE)[jnp.asarray(x.shape[0] - 1)], args=(("n, 4", "float32"),)
        )
        return program(X), X + TABLE[2]


class FunctionOfList(Case):
    error = ProgramError
    remedy = r"write jax\.lax\.switch\(x\.shape\[0\] - 1, LAYERS, \*arguments\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: LAYERS[x.shape[0] - 1](x), args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        program = shlo_disc.compile(lambda x: jax.lax.switch(x.shape[0] - 1, LAYERS, x), args=(("n, 4", "float32"),))
        return program(X), 3 * X


LAYERS = [lambda x: x, lambda x: 2 * x, lambda x: 3 * x]


class NumberOfDict(Case):
    error = ProgramError
    remedy = r"choose by (jax\.numpy\.select\(.*?, list\(SCALES\.values\(\)\)\)), or give"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: x * SCALES[x.shape[0]], args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        def scaled(x: Any) -> Any:
            return x * eval(found[1], {"jax": jax, "x": x, "SCALES": SCALES})  # noqa: S307

        return shlo_disc.compile(scaled, args=(("n, 4", "float32"),))(X), 5 * X


SCALES = {2: 3.0, 3: 5.0}


class RowsByIndices(Case):
    error = jax.errors.TracerArrayConversionError
    remedy = r"write (jax\.numpy\.asarray\(TABLE\)\[t\]) in place of TABLE\[t\]"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda t: TABLE[t], args=(("n", "int32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] == "jax.numpy.asarray(TABLE)[t]"
        program = shlo_disc.compile(lambda t: jnp.asarray(TABLE)[t], args=(("n", "int32"),))
        return program(np.array([3, 1], np.int32)), TABLE[[3, 1]]


class FunctionOfNumPy(Case):
    error = jax.errors.TracerArrayConversionError
    remedy = r"functions of numpy take no traced arrays: write jax\.numpy\.(dot) in place of numpy\.dot"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: np.dot(x, TABLE[:4]), args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        function = getattr(jnp, found[1])
        return shlo_disc.compile(lambda x: function(x, TABLE[:4]), args=(("n, 4", "float32"),))(X), X @ TABLE[:4]


class FunctionOfMath(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"functions of math take no traced arrays: write jax\.numpy\.(exp) in place of math\.exp"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: x * math.exp(x[0, 0]), args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        function = getattr(jnp, found[1])
        return shlo_disc.compile(lambda x: x * function(x[0, 0]), args=(("n, 4", "float32"),))(X), X * math.e


class WhereOfOneArgument(Case):
    error = jax.errors.ConcretizationTypeError
    remedy = r"write shlo_disc\.numpy\.(where) in place of jax\.numpy\.where"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: jnp.where(x > 3)[0], args=(("n", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        function = getattr(shlo_disc.numpy, found[1])
        return shlo_disc.compile(lambda x: function(x > 3)[0], args=(("n", "float32"),))(TABLE[0] * 2), [2, 3]


class ParallelMap(Case):
    error = ProgramError
    remedy = r"write (jax\.vmap\(jnp\.sin\)\(x\))"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: jax.pmap(jnp.sin)(x), args=(("n, 4", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.compile(lambda x: jax.vmap(jnp.sin)(x), args=(("n, 4", "float32"),))(X), np.sin(X)
