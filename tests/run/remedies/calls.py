# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled programs, and bindings, with arrays that do not fit."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, OptionError, ShapeError

from .case import LAYER_ARGS, Case, Numbers, W, X, add_one, compiled_layer, layer, value_of


class DoublePrecision(Case):
    error = ArgumentTypeError
    remedy = (
        r"mismatch for args\[0\]: expected \w+ and called with float64: convert it by args\[0\]\.(astype)\('(\w+)'\)"
    )

    def provoke(self) -> Any:
        return compiled_layer()(X.astype(np.float64), W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(getattr(X.astype(np.float64), found[1])(found[2]), W), X @ W


class DoublePrecisionOfBound(DoublePrecision):
    def provoke(self) -> Any:
        return compiled_layer().bind(X.astype(np.float64))


class BoundByName(Case):
    error = OptionError
    remedy = r"no option 'w' of shlo_disc\.\w+\.bind: it is an argument of .* by name as in (weights)=\{('w'): \.\.\.\}"

    def provoke(self) -> Any:
        return self.program().bind(X, w=W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.program().bind(X, **{found[1]: {value_of(found[2]): W}})(), X @ W

    @staticmethod
    def program() -> Any:
        return compiled_layer()


class BoundByNameOfLoaded(BoundByName):
    @staticmethod
    def program() -> Any:
        return compiled_layer().loaded


class MisspeltOptionOfBind(BoundByName):
    remedy = r"there is no option 'cpy' of shlo_disc\.Executable\.bind; did you mean '(\w+)'\?"

    def provoke(self) -> Any:
        return self.program().bind(X, cpy=False)

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.program().bind(X, **{found[1]: False})(W), X @ W


class OutputOfBind(BoundByName):
    remedy = r"bind; give options=shlo_disc\.Options\((output)=\.\.\.\) to shlo_disc\.compile"

    def provoke(self) -> Any:
        return self.program().bind(X, output="jax")

    def follow(self, found: re.Match[str]) -> Numbers:
        options = shlo_disc.Options(**{found[1]: "jax"})  # type: ignore[arg-type]
        result = shlo_disc.compile(layer, args=LAYER_ARGS, options=options).bind(X)(W)
        assert isinstance(result, jax.Array)
        return result, X @ W


class ListGiven(Case):
    error = ArgumentTypeError
    remedy = (
        r"^'layer' takes x, w: x is a list, and the program takes an array\. Pass "
        r"numpy\.(asarray)\((x), '(float32)'\) for the list x\n"
    )

    def provoke(self) -> Any:
        return self.program()(X.tolist(), W)

    def follow(self, found: re.Match[str]) -> Numbers:
        x = {"x": X.tolist()}[found[2]]
        return self.program()(getattr(np, found[1])(x, found[3]), W), X @ W

    @staticmethod
    def program() -> Any:
        return compiled_layer()


class ListGivenByName(ListGiven):
    def provoke(self) -> Any:
        return self.program()(w=W, x=X.tolist())


class ListGivenOfLoaded(ListGiven):
    @staticmethod
    def program() -> Any:
        compiled_layer().save("layer.disc")
        return shlo_disc.load("layer.disc", trust=True)


class ListGivenToBind(ListGiven):
    def provoke(self) -> Any:
        return self.program().bind(X.tolist())


class ListGivenOfBound(ListGiven):
    remedy = (
        r"^'layer' takes x, w: w is a list, and the program takes an array\. Pass "
        r"numpy\.(asarray)\((w), '(float32)'\) for the list w\n"
    )

    def provoke(self) -> Any:
        return self.program().bind(X)(W.tolist())

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.program().bind(X)(getattr(np, found[1])({"w": W.tolist()}[found[2]], found[3])), X @ W


class TupleGivenInDict(Case):
    error = ArgumentTypeError
    remedy = r"\. Pass numpy\.(asarray)\(args\[0\]\['(k)'\], '(int32)'\) for the tuple args\[0\]\['k'\]\n"

    def provoke(self) -> Any:
        return self.program()({"k": (1, 2, 3)})

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.program()({found[2]: getattr(np, found[1])((1, 2, 3), found[3])}), [2, 4, 6]

    @staticmethod
    def program() -> Any:
        return shlo_disc.compile(lambda p: 2 * p["k"], args=({"k": ("n", "int32")},))


class WrongRank(Case):
    error = ShapeError
    remedy = r"Rank mismatch for args\[0\]: expected \(b, (\d+)\) and called with \(4,\)"

    def provoke(self) -> Any:
        return compiled_layer()(X[0], W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(X[0].reshape(-1, int(found[1])), W), X[:1] @ W


class WrongFixedSize(Case):
    error = ShapeError
    remedy = r"Shape mismatch for args\[0\]\.shape\[(\d)\] .*: expected \(b, (\d)\) and called with \(4, 2\)"

    def provoke(self) -> Any:
        return compiled_layer()(X.T, W)

    def follow(self, found: re.Match[str]) -> Numbers:
        assert X.shape[int(found[1])] == int(found[2])
        return compiled_layer()(X, W), X @ W


class BrokenConstraint(Case):
    error = ShapeError
    remedy = r"symbolic shape constraint b <= (\d+)\."

    def provoke(self) -> Any:
        return self.program()(np.zeros(9, np.float32))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = np.arange(int(found[1]), dtype=np.float32)
        return self.program()(x), x + 1

    @staticmethod
    def program() -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), constraints=("b <= 8",))


class TwoSizesForOneName(Case):
    error = ShapeError
    remedy = r"args\[1\]\.shape\[0\] \(= (\d+)\) and the specification 'b' \(= (\d+)\)"

    def provoke(self) -> Any:
        return self.program()(np.ones(3, np.float32), np.ones(4, np.float32))

    def follow(self, found: re.Match[str]) -> Numbers:
        x = np.arange(int(found[2]), dtype=np.float32)
        return self.program()(x, x), 2 * x

    @staticmethod
    def program() -> Any:
        return shlo_disc.compile(lambda x, y: x + y, args=(("b", "float32"), ("b", "float32")))


class MissingKey(Case):
    error = ArgumentTypeError
    remedy = r"args\[0\] is .*symmetric difference of key sets: (\{.*\})"

    def provoke(self) -> Any:
        return self.program()({"w": X})

    def follow(self, found: re.Match[str]) -> Numbers:
        missing: set[str] = value_of(found[1])
        return self.program()({"w": X} | dict.fromkeys(missing, X[0])), X + X[0]

    @staticmethod
    def program() -> Any:
        return shlo_disc.compile(lambda p: p["w"] + p["b"], args=({"w": ("b, 4", "float32"), "b": ("4", "float32")},))


class NumberOfArguments(Case):
    error = ArgumentTypeError
    remedy = r"args is a tuple of length 1 in the invocation and a tuple of length (\d) when exported"

    def provoke(self) -> Any:
        return compiled_layer()(X)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(*(X, W)[: int(found[1])]), X @ W


class MissingParameter(NumberOfArguments):
    remedy = r"'layer' takes x, w: the call lacks (w)\n"

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(X, **{found[1]: W}), X @ W


class UnknownParameter(NumberOfArguments):
    remedy = r"'layer' takes x, (w): the call gives 'weight', which is none of them"

    def provoke(self) -> Any:
        return compiled_layer()(X, weight=W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(X, **{found[1]: W}), X @ W


class ParameterGivenTwice(NumberOfArguments):
    remedy = r"'layer' takes x, w: the call gives (x) by position and by name"

    def provoke(self) -> Any:
        return compiled_layer()(X, x=X)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(**{found[1]: X}, w=W), X @ W


class TooManyArguments(NumberOfArguments):
    remedy = r"'layer' takes (x, w): the call gives 3 by position"

    def provoke(self) -> Any:
        return compiled_layer().bind(X)(W, W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(*({"x": X, "w": W}[name] for name in found[1].split(", "))), X @ W


class StructureOfParameter(NumberOfArguments):
    remedy = r"'layer' takes x, w: (w) is a \w+, and the program takes an array\n"

    def provoke(self) -> Any:
        return compiled_layer()(X, [W])

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer()(X, **{found[1]: W}), X @ W


class MaskedArray(Case):
    error = ArgumentTypeError
    remedy = r"args\[0\] is a masked array, .*use value\.(\w+)\(\.\.\.\)"

    masked = np.ma.masked_array(X, X > 6)

    def provoke(self) -> Any:
        return compiled_layer()(self.masked, W)

    def follow(self, found: re.Match[str]) -> Numbers:
        filled = getattr(self.masked, found[1])(0)
        return compiled_layer()(filled, W), filled @ W


class PrngKeys(Case):
    error = ArgumentTypeError
    remedy = r"pass jax\.random\.(key_data)\(keys\)"

    def provoke(self) -> Any:
        return self.program()(jax.random.key(3))

    def follow(self, found: re.Match[str]) -> Numbers:
        data = getattr(jax.random, found[1])(jax.random.key(3))
        return self.program()(data), np.asarray(data) + 1

    @staticmethod
    def program() -> Any:
        return shlo_disc.compile(add_one, args=(("2", "uint32"),))


class DonatedWithoutCopy(Case):
    error = ValueError
    remedy = r"bind\((donate=True)\) .*; leave (copy=True)"

    def provoke(self) -> Any:
        return compiled_layer().bind(jax.numpy.asarray(X), donate=True, copy=False)

    def follow(self, found: re.Match[str]) -> Numbers:
        options = {name: value_of(value) for name, _, value in (group.partition("=") for group in found.groups())}
        return compiled_layer().bind(jax.numpy.asarray(X), **options)(W), X @ W


class BoundTooMany(Case):
    error = ArgumentTypeError
    remedy = r"bind got 3 arguments; 'layer' takes (\d)"

    def provoke(self) -> Any:
        return compiled_layer().bind(X, W, W)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled_layer().bind(*(X, W, W)[: int(found[1])])(), X @ W


class BoundWhereJaxTraces(Case):
    error = ArgumentTypeError
    remedy = r"call the executable itself there"

    def provoke(self) -> Any:
        return jax.jit(compiled_layer().bind(X))(W)

    def follow(self, found: re.Match[str]) -> Numbers:
        executable = compiled_layer()
        return jax.jit(lambda w: executable(X, w))(W), X @ W


class NoGradient(Case):
    error = ArgumentTypeError
    remedy = r"has no gradient: (compile) the function itself"

    def provoke(self) -> Any:
        compiled_layer().save("layer.shlodisc")
        return self.gradient(shlo_disc.load("layer.shlodisc", trust=True))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.gradient(getattr(shlo_disc, found[1])(layer, args=LAYER_ARGS)), np.broadcast_to(W.sum(1), X.shape)

    @staticmethod
    def gradient(program: Any) -> Any:
        return jax.grad(lambda x: program(x, W).sum())(X)


class ValuesOfSymbols(Case):
    error = ShapeError
    remedy = r"given by name, as in (\w+)=(\d+)"

    def provoke(self) -> Any:
        return compiled_layer().out_shape()

    def follow(self, found: re.Match[str]) -> Numbers:
        shape = compiled_layer().out_shape(**{found[1]: int(found[2])}).shape
        return shape, (int(found[2]), 3)


class ValuesByPosition(ValuesOfSymbols):
    remedy = r"out_shape takes values of dimension variables by name, as in out_shape\((b)=(1)\), not 2"

    def provoke(self) -> Any:
        return compiled_layer().out_shape(2)


class MappingForPath(Case):
    error = OptionError
    remedy = r"the first argument of report is a path: write report\(dims=(\{'b': 2\})\)"

    def provoke(self) -> Any:
        return compiled_layer().report({"b": 2})

    def follow(self, found: re.Match[str]) -> Numbers:
        page = compiled_layer().report(dims=value_of(found[1]), show=False)
        assert "b=2" in page.read_text()
        page.unlink()
        return 0, 0


class NumberForDims(Case):
    error = ShapeError
    remedy = r"dims= has values of dimension variables by name, such as (\[\{'b': 1\}\]), not 2"

    def provoke(self) -> Any:
        return compiled_layer().trace("trace.json", 2)

    def follow(self, found: re.Match[str]) -> Numbers:
        assert compiled_layer().trace("trace.json", value_of(found[1])).exists()
        assert compiled_layer().trace("trace.json", value_of(found[1])[0]).exists()
        return 0, 0


class OtherKind(Case):
    """An array of another kind of numbers; loaded and bound programs say the same."""

    error = ArgumentTypeError
    remedy = r"called with int32: convert it by args\[0\]\.(astype)\('(\w+)'\), or compile the program for (int32)"

    def provoke(self) -> Any:
        compiled_layer().save("layer.shlodisc")
        loaded = shlo_disc.load("layer.shlodisc", trust=True)
        for call in (lambda: loaded(self.x(), W), lambda: loaded.bind(self.x()), lambda: jax.jit(loaded)(self.x(), W)):
            try:
                call()
            except ArgumentTypeError as error:
                assert re.search(self.remedy, str(error)), str(error)
            else:
                raise AssertionError("it takes the array")
        return compiled_layer()(self.x(), W)

    def follow(self, found: re.Match[str]) -> Numbers:
        converted = compiled_layer()(getattr(self.x(), found[1])(found[2]), W)
        other = shlo_disc.compile(layer, args=(("b, 4", found[3]), LAYER_ARGS[1]))
        return [converted, other(self.x(), W)], [self.x() @ W] * 2

    @staticmethod
    def x() -> Any:
        return X.astype(np.int32)


class TruthValues(OtherKind):
    remedy = r"called with bool: convert it by args\[0\]\.(astype)\('(\w+)'\), or compile the program for (bool)"

    @staticmethod
    def x() -> Any:
        return X > 3


class PythonNumber(Case):
    error = ArgumentTypeError
    remedy = r"called with a Python float: pass (int)\(args\[1\]\), or compile the program for (float32)"
    dtype: ClassVar[str] = "int32"
    number: ClassVar[Any] = 2.0

    def provoke(self) -> Any:
        return self.scaled(self.dtype)(X, self.number)

    def follow(self, found: re.Match[str]) -> Numbers:
        numbers = {"int": int, "float": float, "bool": bool}[found[1]](self.number)
        return [self.scaled(self.dtype)(X, numbers), self.scaled(found[2])(X, self.number)], [X * self.number] * 2

    @staticmethod
    def scaled(dtype: str) -> Any:
        return shlo_disc.compile(lambda x, k: x * k, args=(("b, 4", "float32"), ("", dtype)))


class PythonBool(PythonNumber):
    remedy = r"called with a Python bool: pass (float)\(args\[1\]\), or compile the program for (bool)"
    dtype, number = "float32", True


class PythonIntForBool(PythonNumber):
    remedy = r"called with a Python int: pass (bool)\(args\[1\]\), or compile the program for (int32)"
    dtype, number = "bool", 1


class ComplexForReal(Case):
    error = ArgumentTypeError
    remedy = r"pass its real part, args\[0\]\.(real)\.(astype)\('(\w+)'\), or compile the program for (complex64)"

    def provoke(self) -> Any:
        return compiled_layer()(X.astype(np.complex64), W)

    def follow(self, found: re.Match[str]) -> Numbers:
        x = X.astype(np.complex64)
        real = getattr(getattr(x, found[1]), found[2])(found[3])
        other = shlo_disc.compile(lambda x, w: x @ w, args=(("b, 4", found[4]), LAYER_ARGS[1]))
        return [compiled_layer()(real, W), other(x, W)], [X @ W] * 2
