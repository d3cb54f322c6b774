# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`args=` in other forms than pairs, and functions that ask more of symbolic sizes than is known."""

from __future__ import annotations

import functools
import re
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc import numpy
from shlo_disc.errors import ArgumentTypeError, ProgramError

from .case import Case, Numbers, W, X, add_one, layer, run_add_one, run_layer, value_of

_WHOLE = r"args= has a shape and a dtype for each argument: write args=(\(.*\))"
_ENTRY = r"write args\[0\] as (\(.*\))"


class ShapesForPairs(Case):
    error = ProgramError
    remedy = _WHOLE

    def provoke(self) -> Any:
        return shlo_disc.compile(layer, args=("b, 4", "4, 3"))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_layer(shlo_disc.compile(layer, args=value_of(found[1])))


class NamesForPairs(Case):
    error = ProgramError
    remedy = _WHOLE

    def provoke(self) -> Any:
        return shlo_disc.compile(jax.numpy.outer, args=("b", "s"))

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.compile(jax.numpy.outer, args=value_of(found[1]))(X[0], W[0]), np.outer(X[0], W[0])


class ListForPair(Case):
    """One entry in a form that is not a pair; its subclasses have others."""

    error = ProgramError
    remedy = _ENTRY
    entry: ClassVar[Any] = ["b, 4", "float32"]

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(self.entry,))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=(value_of(found[1]),)), 3, 4)


class TripleForPair(ListForPair):
    entry = ("b", 4, "float32")


class ShapeForPair(ListForPair):
    entry = ("b", 4)


class NamesOfOneShape(ListForPair):
    entry = ("b", "s")


class StructOfTexts(ListForPair):
    entry = jax.ShapeDtypeStruct(("b", 4), np.float32)  # type: ignore[arg-type]


class ArrayForArgs(Case):
    error = ProgramError
    remedy = r"for one array x, write args=\((x,)\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=X)  # type: ignore[arg-type]

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] == "x,"
        return run_add_one(shlo_disc.compile(add_one, args=(X,)), *X.shape)


class SettingForArray(Case):
    error = ArgumentTypeError
    remedy = r"the argument setting is a .*which is not an array.*functools\.(partial)\(function"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.chosen, args=(("b", "float32"), object()))

    def follow(self, found: re.Match[str]) -> Numbers:
        function = getattr(functools, found[1])(self.chosen, setting=object())
        return run_add_one(shlo_disc.compile(function, args=(("b", "float32"),)), 3)

    @staticmethod
    def chosen(x: Any, setting: object) -> Any:
        return x + 1 if setting else x


class ConstraintOnNothing(Case):
    error = ProgramError
    remedy = r"constraints= has a size 'c', and the sizes of the arguments are named (\['b'\])"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=("c <= 8",))

    def follow(self, found: re.Match[str]) -> Numbers:
        (name,) = value_of(found[1])
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=(f"{name} <= 8",)), 8)


class BranchOnSize(Case):
    error = Exception
    remedy = r"state which one holds for yours, constraints=(\(\"b >= 4\",\)) or"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.function, args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = value_of(found[1])
        return run_add_one(shlo_disc.compile(self.function, args=(("b", "float32"),), constraints=constraints), 4)

    @staticmethod
    def function(x: Any) -> Any:
        return x + 1 if x.shape[0] > 3 else x


class BranchThatFails(BranchOnSize):
    remedy = r"for yours, constraints=.* or constraints=(\(\"b <= 3\",\))"

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = value_of(found[1])
        program = shlo_disc.compile(self.function, args=(("b", "float32"),), constraints=constraints)
        return program(X[0, :3]), X[0, :3]


class NoMultiple(Case):
    error = Exception
    remedy = r"declare the size as a multiple: write \"(4\*b)\" in place of \"b\" in args= or dynamic="

    def provoke(self) -> Any:
        return shlo_disc.compile(self.rows, args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = X.reshape(8)
        return shlo_disc.compile(self.rows, args=((found[1], "float32"),))(x), X

    @staticmethod
    def rows(x: Any) -> Any:
        return x.reshape(-1, 4)


class LoopOverSize(Case):
    error = ProgramError
    remedy = r"write jax\.lax\.(fori_loop)\(0, x\.shape\[0\], "

    def provoke(self) -> Any:
        def loop(x: Any) -> Any:
            for i in range(x.shape[0]):
                x = x + i
            return x

        return shlo_disc.compile(loop, args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        def loop(x: Any) -> Any:
            return getattr(jax.lax, found[1])(0, x.shape[0], lambda i, y: y + i, x)

        return shlo_disc.compile(loop, args=(("b", "float32"),))(X[0]), X[0] + 6


class SizeAsNumber(Case):
    error = Exception
    remedy = r"write jax\.numpy\.(float32) in place of np\.float32"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: x / np.float32(x.shape[0]), args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        size = getattr(jax.numpy, found[1])
        return shlo_disc.compile(lambda x: x / size(x.shape[0]), args=(("b", "float32"),))(X[0]), X[0] / 4


class BooleanIndex(Case):
    error = Exception
    remedy = r"write shlo_disc\.numpy\.(\w+)\(x, mask\) in place of x\[mask\]"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: x[x > 1], args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        select = getattr(numpy, found[1])
        return shlo_disc.compile(lambda x: select(x, x > 1), args=(("b", "float32"),))(X[0]), X[0, 2:]


class SizeFromData(Case):
    error = Exception
    remedy = r"write shlo_disc\.numpy\.(\w+) in place of jax\.numpy\.nonzero"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda x: jax.numpy.nonzero(x)[0], args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        nonzero = getattr(numpy, found[1])
        return shlo_disc.compile(lambda x: nonzero(x)[0], args=(("b", "float32"),))(X[0]), [1, 2, 3]


class DtypeOfSignatures(Case):
    """The names in signatures name dtypes in `args=`, too."""

    error = ProgramError
    remedy = r"unknown dtype 'f33'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "f33"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        program = shlo_disc.compile(add_one, args=(("b", "i32"),))
        assert "args[0]: i32[b]" in str(program.signature) and found
        program = shlo_disc.compile(lambda x, y: (x + 1) * y, args=(("b", "f32"), ("b", "bf16")))
        return program(X[0], np.ones(4, jax.numpy.bfloat16)), X[0] + 1
