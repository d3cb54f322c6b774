# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc.jit`."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, OptionError, RecompileError

from .case import Case, Numbers, W, X, add_one, layer, value_of


def scaled(x: Any, factors: Any) -> Any:
    """An array times the first of its static factors."""
    return x * factors[0]


class SecondSize(Case):
    error = RecompileError
    remedy = r"if args\[0\]\.shape\[0\] is meant to change, dynamic= says so: with dynamic=(\('n, _', None\)) one"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(layer))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(layer, dynamic=value_of(found[1])))

    @staticmethod
    def called(function: Any) -> Numbers:
        function(X, W)
        return function(X[:1], W), X[:1] @ W


class EmptySecond(Case):
    error = RecompileError
    remedy = r"with dynamic=(\('n - 1, _',\)) one"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(add_one))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(add_one, dynamic=value_of(found[1])))

    @staticmethod
    def called(function: Any) -> Numbers:
        function(X)
        return function(X[:0]), X[:0]


class EmptyOfName(EmptySecond):
    remedy = r"one that may be 0 is ('b - 1') in dynamic=, as of args\[0\]"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(add_one, dynamic=("b, _",)))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(add_one, dynamic=(f"{value_of(found[1])}, _",)))


class SecondSizeBesideNames(SecondSize):
    remedy = r"Shape mismatch: args\[0\].*with dynamic=(\('n, _', '4, k'\)) one"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(layer, dynamic=(None, "4, k")))


class OtherRank(SecondSize):
    error = OptionError
    remedy = r"has 1 size for args\[0\], whose shape is \(2, 4\): .* such as ('b, \.\.\.')"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(layer, dynamic=("b", None)))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(layer, dynamic=(value_of(found[1]), None)))


class SizesOfNumber(Case):
    error = OptionError
    remedy = r"1 size for args\[1\], whose shape is \(\): write None for a number, as in dynamic=(\('b, 4', None\))"

    dynamic: ClassVar[Any] = ("b, 4", "b")

    def provoke(self) -> Any:
        return shlo_disc.jit(self.scaled, dynamic=self.dynamic)(X, 2.0)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(self.scaled, dynamic=value_of(found[1]))(X, 2.0), 2 * X

    @staticmethod
    def scaled(x: Any, factor: Any) -> Any:
        return x * factor


class SizesOfNumberInString(SizesOfNumber):
    remedy = (
        r"2 sizes for args\[1\], whose shape is \(\): write None for a number, as in dynamic=(\('b, \.\.\.', None\))"
    )
    dynamic = "b, ..."


class MoreSizesThanArgument(SizesOfNumber):
    remedy = r"has 3 sizes for args\[0\], whose shape is \(2, 4\): write one for each, .*, such as ('b, _')"
    dynamic = ("b, _, _", None)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(self.scaled, dynamic=(value_of(found[1]), None))(X, 2.0), 2 * X


class SizesOfNumberInTree(Case):
    error = OptionError
    remedy = r"has 1 size for args\[0\]\['k'\], .* write (None) in its place, in an entry with the structure of the arg"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.scaled, dynamic=("b",))({"x": X[0], "k": 2.0})

    def follow(self, found: re.Match[str]) -> Numbers:
        dynamic = ({"x": "b", "k": value_of(found[1])},)
        return shlo_disc.jit(self.scaled, dynamic=dynamic)({"x": X[0], "k": 2.0}), 2 * X[0]

    @staticmethod
    def scaled(arrays: Any) -> Any:
        return arrays["x"] * arrays["k"]


class OtherSize(SecondSize):
    error = OptionError
    remedy = r"dynamic= has 'b, 8' for an argument of shape \(2, 4\), which has no size 8 there: write (_) for"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(layer, dynamic=("b, 8", None)))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(layer, dynamic=(f"b, {found[1]}", None)))


class MissingArgument(Case):
    error = RecompileError
    remedy = r"program: 'layer' takes x, w: the call lacks (w) \[DISC-R101\]$"

    arguments: ClassVar[tuple[Any, ...]] = (X,)

    def provoke(self) -> Any:
        function = shlo_disc.jit(layer, dynamic=("b, _", None))
        function(X, W)
        return function(*self.arguments)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(layer, dynamic=("b, _", None))(X, {"w": W}[found[1]]), X @ W


class MissingAsNone(MissingArgument):
    remedy = r"program: args\[(1)\] is None, and the program takes an array \[DISC-R101\]$"
    arguments = (X, None)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(layer, dynamic=("b, _", None))(X, {"1": W}[found[1]]), X @ W


class ListForArray(MissingArgument):
    remedy = r"args\[0\] is a list, and the program takes an array: pass numpy\.(asarray)\(args\[0\]\) \[DISC-R101\]$"
    arguments = (X.tolist(), W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(layer, dynamic=("b, _", None))(getattr(np, found[1])(self.arguments[0]), W), X @ W


class MoreThanItWasCompiledFor(Case):
    error = RecompileError
    remedy = r"program: kwargs\['bias'\] is new\n.*(compile_once)=(False) compiles"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(self.biased))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(self.biased, **{found[1]: value_of(found[2])}))

    @staticmethod
    def biased(x: Any, bias: Any = 1) -> Any:
        return x + bias

    @staticmethod
    def called(function: Any) -> Numbers:
        function(X)
        return function(X, bias=X), X + X


class JitConstraint(Case):
    error = OptionError
    remedy = r"and 'b > 1' does not: write '(b >= 2)'"

    def provoke(self) -> Any:
        return shlo_disc.jit(add_one, dynamic=("b, _",), constraints=("b > 1",))(X)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(add_one, dynamic=("b, _",), constraints=(found[1],))(X), X + 1


class ForbiddenSize(Case):
    error = RecompileError
    remedy = r"Pass sizes that satisfy it, or change what (constraints)= states"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(add_one, dynamic=("b, _",), constraints=("b <= 2",)))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(add_one, dynamic=("b, _",), **{found[1]: ("b <= 4",)}))

    @staticmethod
    def called(function: Any) -> Numbers:
        function(X)
        return function(np.concatenate([X, X])), np.concatenate([X, X]) + 1


class JitConstraintString(JitConstraint):
    remedy = r"write constraints=\('(.*?)',\)"

    def provoke(self) -> Any:
        return shlo_disc.jit(add_one, dynamic=("b, _",), constraints="b >= 2")(X)


class SecondSizeInTree(Case):
    error = RecompileError
    remedy = r"one entry for each positional argument, such as (\"b, ...\") for arrays whose first size does, or"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(self.of_dict))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(self.of_dict, dynamic=(value_of(found[1]),)))

    @staticmethod
    def of_dict(arrays: Any) -> Any:
        return arrays["x"] + 1

    @staticmethod
    def called(function: Any) -> Numbers:
        function({"x": X})
        return function({"x": X[:1]}), X[:1] + 1


class SecondDtype(Case):
    error = RecompileError
    remedy = r"Dtype mismatch for args\[0\].*where both are meant, (compile_once)=(False) compiles one"

    def provoke(self) -> Any:
        return self.called(shlo_disc.jit(add_one))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.called(shlo_disc.jit(add_one, **{found[1]: value_of(found[2])}))

    @staticmethod
    def called(function: Any) -> Numbers:
        function(X)
        return function(X.astype(np.int32)), X + 1


class EntriesOfDynamic(Case):
    error = OptionError
    remedy = r"the call has (\d) positional arguments: one for each, (None) for those whose sizes stay fixed"

    def provoke(self) -> Any:
        return shlo_disc.jit(layer, dynamic=("b, ...",))(X, W)

    def follow(self, found: re.Match[str]) -> Numbers:
        entries = ("b, ...", value_of(found[2]))
        assert len(entries) == int(found[1])
        return shlo_disc.jit(layer, dynamic=entries)(X, W), X @ W


class NoHash(Case):
    error = ArgumentTypeError
    remedy = r"the static argument 1 has to be hashable, and list is not"

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, static_argnums=1)(X, [2.0])

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(scaled, static_argnums=1)(X, (2.0,)), X * 2


class FunctionInTree(Case):
    error = ArgumentTypeError
    remedy = r"args\[0\]\['act'\] is a function, which is not an array: shlo_disc\.jit\(function, (filter)=(True)\)"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.applied)({"act": add_one, "w": W}, X)

    def follow(self, found: re.Match[str]) -> Numbers:
        function = shlo_disc.jit(self.applied, **{found[1]: value_of(found[2])})
        return function({"act": add_one, "w": W}, X), X @ W + 1

    @staticmethod
    def applied(model: Any, x: Any) -> Any:
        return model["act"](x @ model["w"])


class FunctionInTreeOfCompile(FunctionInTree):
    remedy = r"the argument model\['act'\] is a .*which is not an array: shlo_disc\.jit\(function, (filter)=(True)\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.applied, args=({"act": add_one, "w": W}, X))


class FilterOfCompile(FunctionInTree):
    error = OptionError
    remedy = (
        r"'filter' of shlo_disc\.compile; shlo_disc\.jit has it: write shlo_disc\.jit\(function, (filter)=(True), "
        r"dynamic=\.\.\.\), and call it, or \.(lower)\(\.\.\.\)\.(compile)\(\) of it for an Executable"
    )

    def provoke(self) -> Any:
        args = ({"act": add_one, "w": W}, ("b, 4", "float32"))
        return shlo_disc.compile(self.applied, args=args, filter=True)  # type: ignore[call-overload]

    def follow(self, found: re.Match[str]) -> Numbers:
        model = {"act": add_one, "w": W}
        function = shlo_disc.jit(self.applied, dynamic=(None, "b, ..."), **{found[1]: value_of(found[2])})
        executable = getattr(getattr(function, found[3])(model, X[:1]), found[4])()
        return [function(model, X), executable([W, X])[0]], [X @ W + 1] * 2


class TextAsArgument(Case):
    error = ArgumentTypeError
    remedy = r"args\[1\] is a str, which is not an array: .* static by (static_argnums)=(1) of .* by (filter)=(True)"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.chosen)(X, "twice")

    def follow(self, found: re.Match[str]) -> Numbers:
        static, filtered = (
            shlo_disc.jit(self.chosen, **{name: value_of(value)})(X, "twice")
            for name, value in (found.groups()[:2], found.groups()[2:])
        )
        return np.stack([static, filtered]), np.stack([2 * X] * 2)

    @staticmethod
    def chosen(x: Any, mode: str) -> Any:
        return x * 2 if mode == "twice" else x


class TextByName(TextAsArgument):
    remedy = r"kwargs\['mode'\] is a str, .* by (static_argnames)=('mode') of .* by (filter)=(True)"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.chosen)(X, mode="twice")


class DonatedStatic(Case):
    error = OptionError
    remedy = r"argument (\d) is static, and cannot be donated"

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, static_argnums=1, donate_argnums=(0, 1))

    def follow(self, found: re.Match[str]) -> Numbers:
        donated = tuple({0, 1} - {int(found[1])})
        return shlo_disc.jit(scaled, static_argnums=1, donate_argnums=donated)(jax.numpy.asarray(X), (2.0,)), X * 2


class FilterWithStatics(Case):
    error = OptionError
    remedy = r"filter=True finds out what is static: it takes neither static_ nor donate_ arguments"

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, filter=True, static_argnums=1)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(scaled, filter=True)(X, (2.0,)), X * 2


class NotYetCalled(Case):
    error = OptionError
    remedy = (
        r"no call has compiled 'add_one' yet: (call) it first, or use \.(lower)\(\.\.\.\)\.(compile)\(\) \[DISC-O105\]$"
    )

    def provoke(self) -> Any:
        return shlo_disc.jit(add_one).executable

    def follow(self, found: re.Match[str]) -> Numbers:
        function = shlo_disc.jit(add_one)
        lowered = getattr(getattr(function, found[2])(X), found[3])()(X)
        function(X)
        return np.stack([function.executable(X), lowered]), np.stack([X + 1] * 2)


class NoSuchArgument(Case):
    error = OptionError
    remedy = r"^static_argnums=2: the function has no argument 2; it takes x, (factors) "

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, static_argnums=2)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(scaled, static_argnames=found[1])(X, (2.0,)), X * 2


class NoSuchArgumentFromTheEnd(NoSuchArgument):
    remedy = r"^static_argnums=\(0, -3\): the function has no argument -3; it takes x, (factors) "

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, static_argnums=(0, -3))


class NoSuchName(NoSuchArgument):
    remedy = r"^static_argnames='factor': the function has no argument 'factor'; it takes x, (factors) "

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, static_argnames="factor")


class NoSuchDonated(NoSuchArgument):
    remedy = r"^donate_argnums=2: the function has no argument 2; it takes x, (factors) "

    def provoke(self) -> Any:
        return shlo_disc.jit(scaled, donate_argnums=2)


class StopAsNumber(Case):
    error = IndexError
    remedy = r"shlo_disc: if the size is the Python number .*, make it static by (static_argnums)=(1) of shlo_disc\.jit"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.first, dynamic=("n", None))(X[0], 3)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(self.first, dynamic=("n", None), **{found[1]: value_of(found[2])})(X[0], 3), X[0, :3]

    @staticmethod
    def first(x: Any, k: Any) -> Any:
        return x[:k]


class StopByName(StopAsNumber):
    remedy = r"make it static by (static_argnames)=('k') of shlo_disc\.jit"

    def provoke(self) -> Any:
        return shlo_disc.jit(self.first, dynamic=("n",))(X[0], k=3)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(self.first, dynamic=("n",), **{found[1]: value_of(found[2])})(X[0], k=3), X[0, :3]


class EllipsisBeforeAName(Case):
    error = OptionError
    remedy = r"stands at the end, .*write _ for each size before 'd', as in '(_, d)'"

    def provoke(self) -> Any:
        return shlo_disc.jit(add_one, dynamic=("..., d",))(X)

    def follow(self, found: re.Match[str]) -> Numbers:
        return shlo_disc.jit(add_one, dynamic=(found[1],))(X), X + 1
