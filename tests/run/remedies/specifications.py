# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.compile` with arguments or options that do not fit."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import jax
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.errors import OptionError, ProgramError, UnsupportedError
from tests.run.test_custom_calls import Call, copy_out, plain

from .case import LAYER_ARGS, Case, Numbers, add_one, exported_for, layer, run_add_one, run_layer, value_of

TEXT = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}"


class NoArgs(Case):
    error = ProgramError
    remedy = r"needs args=, e\.g\. args=(\(.*?\),\))"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one)

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=value_of(found[1])), 2, 768)


class MisspeltOption(Case):
    error = OptionError
    remedy = r"there is no option 'thread' of shlo_disc.Options; did you mean '(\w+)'\?"

    def provoke(self) -> Any:
        return Options(thread=1)  # type: ignore[call-arg]

    def follow(self, found: re.Match[str]) -> Numbers:
        options = Options(**{found[1]: 1})
        return run_add_one(shlo_disc.compile(add_one, args=(("b, 4", "float32"),), options=options), 3, 4)


class PairInsteadOfSequence(Case):
    error = ProgramError
    remedy = r"one entry for each argument: write args=(\(.*\))"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=("b, 4", "float32"))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=value_of(found[1])), 3, 4)


class TupleInsteadOfSequence(PairInsteadOfSequence):
    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=((3, 4), np.float32))


class StringOfArgs(Case):
    error = ProgramError
    remedy = r"args= is a sequence such as (\(.*?\),\))"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args="b, 768")

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=value_of(found[1])), 2, 768)


class ConstraintsAsString(Case):
    error = ProgramError
    remedy = r"write constraints=(\(.*\))"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints="b <= 8")

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = value_of(found[1])
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=constraints), 8)


class ConstraintWithLess(Case):
    error = ProgramError
    remedy = r"compares sizes by <=, >= or ==, and 'b < 9' does not: write '(b <= 8)'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=("b < 9",))

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = (found[1],)
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=constraints), 8)


class SizeWithoutName(Case):
    error = ProgramError
    remedy = r"args= has '_, 4': write a number or a name, such as (b), for each size, and not '(_)'"
    shape: ClassVar[str] = "_, 4"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=((self.shape, "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        shape = self.shape.replace(found[2], found[1])
        return run_add_one(shlo_disc.compile(add_one, args=((shape, "float32"),)), 3, 4)


class SizesWithoutComma(Case):
    error = ProgramError
    remedy = r"args= has 'b 4': commas separate sizes: write '(b, 4)'"
    shape: ClassVar[str] = "b 4"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=((self.shape, "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=((found[1], "float32"),)), 4, 4)


class NumberBesideName(SizesWithoutComma):
    remedy = r"args= has '4, 2b': write '(4, 2\*b)'"
    shape = "4, 2b"


class QuotientOfName(Case):
    error = ProgramError
    remedy = (
        r"write '(floordiv\(b, 2\))' if another argument has the size (b); otherwise name this size, as by '(b)', and "
        r"write '(2\*b)' for its multiple"
    )

    def provoke(self) -> Any:
        return self.halves("b", "b//2")

    def follow(self, found: re.Match[str]) -> Numbers:
        x, y = np.arange(6, dtype=np.float32), np.ones(3, np.float32)
        by_function, by_name = self.halves(found[2], found[1]), self.halves(found[4], found[3])
        dynamic = shlo_disc.jit(self.halved, dynamic=(found[4], found[3]))
        return [by_function(x, y), by_name(x, y), dynamic(x, y)], [x[:3] + y] * 3

    @staticmethod
    def halved(x: Any, y: Any) -> Any:
        return x[: x.shape[0] // 2] + y

    @classmethod
    def halves(cls, *sizes: str) -> Any:
        return shlo_disc.compile(cls.halved, args=[(size, "float32") for size in sizes])


class QuotientOfNameInDynamic(QuotientOfName):
    error = OptionError
    remedy = rf"dynamic= has 'b/2' for args\[1\], whose shape is \(3,\): {QuotientOfName.remedy}"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.halved, dynamic=("b", "b/2"))(np.ones(6, np.float32), np.ones(3, np.float32))


class ShapesWithoutDtypes(Case):
    error = ProgramError
    remedy = r"write args\[0\] as (\('3, 4', 'float32'\)), or as (numpy\.asarray)\(\(3, 4\)\) if these are the numbers"

    def provoke(self) -> Any:
        return shlo_disc.compile(layer, args=((3, 4), (4, 2)))

    def follow(self, found: re.Match[str]) -> Numbers:
        x, w = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
        assert shlo_disc.compile(add_one, args=(np.asarray((3, 4)),))(np.asarray((1, 2), np.int32)).tolist() == [2, 3]
        return shlo_disc.compile(layer, args=(value_of(found[1]), w))(x, w), x @ w


class ShapesOfParameters(ShapesWithoutDtypes):
    remedy = r"write args\[0\]\['w'\] as (\('3, 4', 'float32'\)), or as"

    def provoke(self) -> Any:
        return shlo_disc.compile(lambda params, x: params["w"] @ x, args=({"w": [3, 4]}, (4, 2)))


class ShapesForJaxJit(ShapesWithoutDtypes):
    def provoke(self) -> Any:
        return shlo_disc.compile(jax.jit(layer), args=((3, 4), (4, 2)))


class NoShape(Case):
    error = ProgramError
    remedy = (
        r"args\[0\] has None for the shape, which is a text such as ('b, 768') or a tuple such as (\('b', 768\)), "
        r"with .*; (\(\)) is the shape of a number"
    )
    shape: ClassVar[Any] = None

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=((self.shape, "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        shapes = [value_of(text) for text in found.groups()]
        programs = [shlo_disc.compile(add_one, args=((shape, "float32"),)) for shape in shapes]
        assert float(programs[2](np.float32(1))) == 2
        np.testing.assert_array_equal(*run_add_one(programs[0], 2, 768))
        return run_add_one(programs[1], 3, 768)


class ArrayForShape(NoShape):
    remedy = NoShape.remedy.replace("None", "a ndarray")
    shape = np.zeros(3, np.float32)


class AxesForShape(NoShape):
    remedy = NoShape.remedy.replace("None", r"\{0: 'b'\}")
    shape: ClassVar[Any] = {0: "b"}


class NoShapeByName(NoShape):
    remedy = NoShape.remedy.replace(r"args\[0\]", r"kwargs\['x'\]")

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(), kwargs={"x": (self.shape, "float32")})


class SizeOfTensorFlow(SizeWithoutName):
    remedy = r"args= has 'None, 4': write a number or a name, such as (b), for each size, and not '(None)'"
    shape = "None, 4"


class NegativeSize(SizeWithoutName):
    remedy = r"args= has '-1, 4': sizes are not negative; write a name, such as (b), for one that varies"
    shape = "-1, 4"

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=((f"{found[1]}, 4", "float32"),)), 3, 4)


class UnknownDtype(Case):
    error = ProgramError
    remedy = r"unknown dtype 'float_32'.*did you mean '(float32)'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float_32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=(("b", found[1]),)), 5)


class MisspeltDtype(UnknownDtype):
    remedy = r"unknown dtype 'flot32' in \('b', 'flot32'\); did you mean '(float32)'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "flot32"),))


class UnlikelyDtype(UnknownDtype):
    remedy = r"unknown dtype 'u7'.*dtypes are .*\b(float32)\b"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "u7"),))


class ConstraintOnRemainder(ConstraintWithLess):
    remedy = r"the remainder as a function: write '(mod\(b, 8\) == 0)' in place of 'b % 8 == 0'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=("b % 8 == 0",))


class ConstraintOfInequality(ConstraintWithLess):
    remedy = r"cannot state 'b != 3': leave it out, or state a range by (<=) and >="

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=("b != 3",))

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = (f"b {found[1]} 8",)
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=constraints), 8)


class ConstraintOfFraction(ConstraintOfInequality):
    remedy = r"has no fractions, as in 's/2 <= 8': write floordiv\(s, 2\), or 2\*t in place of s"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("s", "float32"),), constraints=("s/2 <= 8",))

    def follow(self, found: re.Match[str]) -> Numbers:
        constraints = ("floordiv(s, 2) <= 8",)
        return run_add_one(shlo_disc.compile(add_one, args=(("s", "float32"),), constraints=constraints), 8)


class SizeInPlaceOfConstraint(ConstraintWithLess):
    remedy = r"'b' does not: write it as '(b <= 64)'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=("b",))


class ConstraintsThatContradict(Case):
    error = ProgramError
    remedy = (
        r"no call can satisfy the constraints '(b >= 8)' and '(b <= 4)' together: change one of them, or leave it out"
    )

    def provoke(self) -> Any:
        return self.compiled("b >= 2", "b >= 8", "b <= 4")

    def follow(self, found: re.Match[str]) -> Numbers:
        with pytest.raises(OptionError, match="satisfy the constraints 'b >= 8' and 'b <= 4'"):
            shlo_disc.jit(add_one, constraints=("b >= 8", "b <= 4"))
        run_add_one(self.compiled("b >= 2", found[2]), 3)
        return run_add_one(self.compiled("b >= 2", found[1]), 9)

    @staticmethod
    def compiled(*constraints: str) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=constraints)


class ConstraintsOfTwoSizes(ConstraintsThatContradict):
    remedy = r"the constraints '(b >= 2)' and '(b == 1)' together"

    def provoke(self) -> Any:
        return self.compiled("b >= 2", "b == 1")

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(self.compiled(found[2]), 1)


class ConstraintThatNoSizeSatisfies(ConstraintsThatContradict):
    remedy = r"satisfy the constraint 'b <= 0': sizes are at least 1, and one that may be 0 is named \"(b - 1)\""

    def provoke(self) -> Any:
        return self.compiled("b <= 0")

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=((found[1], "float32"),), constraints=("b <= 1",)), 0)


class OtherPlatform(Case):
    error = ProgramError
    remedy = r"export it with platforms=(\[.*?\])"

    def provoke(self) -> Any:
        return shlo_disc.compile(exported_for(["tpu"]))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(exported_for(value_of(found[1]))), 3)


class ArgsForText(Case):
    error = OptionError
    remedy = r"args=, kwargs= and constraints= apply to a JAX function; this program states its own shapes"

    def provoke(self) -> Any:
        return shlo_disc.compile(TEXT, args=(("b", "float32"),))

    def follow(self, found: re.Match[str]) -> Numbers:
        actual, sums = run_add_one(shlo_disc.compile(TEXT), 3)
        return actual, sums - 1


class NoProgram(Case):
    error = ProgramError
    remedy = r"or a JAX function with args="

    def provoke(self) -> Any:
        return shlo_disc.compile(3)

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),)), 3)


class OptionsAsDict(Case):
    error = OptionError
    remedy = r"write options=shlo_disc\.(\w+)\((\w+)=(\d+)\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), options={"opt_level": 2})  # type: ignore[arg-type]

    def follow(self, found: re.Match[str]) -> Numbers:
        options = getattr(shlo_disc, found[1])(**{found[2]: int(found[3])})
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), options=options), 3)


class HintForNoSymbol(Case):
    error = OptionError
    remedy = r"names no symbol; the symbols are (\[.*?\])"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), options=Options(hints={"batch": 8}))

    def follow(self, found: re.Match[str]) -> Numbers:
        options = Options(hints=dict.fromkeys(value_of(found[1]), 8))
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), options=options), 3)


class UnknownTarget(Case):
    error = OptionError
    remedy = r"unknown target 'gpu'; targets are '(\w+)'"

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), target="gpu")

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), target=found[1]), 3)


class LimitsWithoutProcess(Case):
    error = OptionError
    remedy = r"they need (isolate)=(True)"

    def provoke(self) -> Any:
        return Options(compile_seconds=60)

    def follow(self, found: re.Match[str]) -> Numbers:
        isolate: bool = value_of(found[2])
        options = Options(compile_seconds=60, **{found[1]: isolate})  # type: ignore[arg-type]
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), options=options), 3)


class UnregisteredCustomCall(Case):
    error = UnsupportedError
    remedy = r"@tests\.remedy.* register a native function for it with shlo_disc\.(\w+)"

    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @tests.remedy(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""

    def provoke(self) -> Any:
        return shlo_disc.compile(self.text)

    def follow(self, found: re.Match[str]) -> Numbers:
        def double(call: Call) -> None:
            copy_out(call, call.operands[0].array() * 2)

        getattr(shlo_disc, found[1])("tests.remedy", plain(double))
        x = np.arange(3, dtype=np.float32)
        return shlo_disc.compile(self.text)(x), x * 2


class SizesOfOneArray(Case):
    error = ProgramError
    remedy = r"args= does not fit add_one\(x\): .* For one array of that shape write args=(\(.*\)) \["

    def provoke(self) -> Any:
        return shlo_disc.compile(add_one, args=(3, 4))

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=value_of(found[1])), 3, 4)


class SizesOfOneArrayOfJitted(SizesOfOneArray):
    def provoke(self) -> Any:
        return shlo_disc.compile(jax.jit(add_one), args=(3, 4))


class ArgumentThatIsMissing(Case):
    error = ProgramError
    remedy = r"args= does not fit layer\(x, w\): .*'w'. Write one entry for each argument, such as (\(.*\)) \["

    def provoke(self) -> Any:
        return shlo_disc.compile(layer, args=LAYER_ARGS[:1])

    def follow(self, found: re.Match[str]) -> Numbers:
        assert value_of(found[1]) == ("b, 768", "float32")
        return run_layer(shlo_disc.compile(layer, args=LAYER_ARGS))
