# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of Python, NumPy and JAX that take a number, and get a size that is a symbol."""

from __future__ import annotations

import inspect
import math
import operator
import random
import re
from abc import abstractmethod
from math import sqrt
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

import shlo_disc
import shlo_disc.numpy
from shlo_disc.errors import ProgramError

from .case import Case, Numbers
from .traced import VALUES, compiled

KEY = jax.random.key(0)
MASK = 3


class NumberCase(Case):
    """A function, and what its program returns where the remedy is an expression in its place."""

    error = ProgramError
    expected: ClassVar[Any]

    @staticmethod
    @abstractmethod
    def function(x: Any) -> Any:
        """The function to compile."""

    def provoke(self) -> Any:
        """`jit` raises the same."""
        try:
            shlo_disc.jit(self.function, dynamic="n")(VALUES)
        except ProgramError as error:
            assert re.search(self.remedy, str(error)), str(error)
            assert re.match(rf"{re.escape(inspect.getfile(self.function))}:\d+: ", str(error)) and error.code in (
                "DISC-P110",
                "DISC-P111",
            )
            assert error.__cause__ is not None
        else:
            raise AssertionError("jit compiles it")
        return compiled(self.function)

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.result(self.text(found)), self.expected

    def text(self, found: re.Match[str]) -> str:
        """The expression to write."""
        return found[1]

    @staticmethod
    def result(text: str) -> Any:
        """The result of a program that is this expression of x and of the names above."""
        names = {"jax": jax, "shlo_disc": shlo_disc, "KEY": KEY, "MASK": MASK, "np": np}
        return compiled(lambda x: 1 * eval(text, names | {"x": x}))(VALUES)  # noqa: S307


class Length(NumberCase):
    function = staticmethod(lambda x: x * len(x))
    remedy = r"write (x\.shape\[0\]) in place of len\(x\)"
    expected = 6


class Absolute(NumberCase):
    function = staticmethod(lambda x: x * abs(x.shape[0] - 9))
    remedy = r"write (jax\.core\.max_dim\(.*\)) in place of abs\(x"
    expected = 3


class RangeOfSize(NumberCase):
    function = staticmethod(lambda x: sum(x[i] for i in range(x.shape[0])))
    remedy = (
        r"in place of range\(x\.shape\[0\]\) write (jax\.lax\.fori_loop\(0, x\.shape\[0\], lambda i, carry: \.\.\., "
        r"start\)), or (jax\.vmap\(function\)\(.*\)) for a result for each i"
    )
    expected = VALUES.sum()

    def text(self, found: re.Match[str]) -> str:
        rows = self.result(found[2].replace("function", "lambda i: 2 * x[i]"))
        np.testing.assert_array_equal(rows, 2 * VALUES)
        return found[1].replace("...", "carry + x[i]").replace("start", "0.0")


class RangeFromOne(RangeOfSize):
    function = staticmethod(lambda x: sum(x[i] for i in range(1, x.shape[0])))
    remedy = r"write (jax\.lax\.fori_loop\(1, x\.shape\[0\], .* start\)), or (jax\.vmap\(function\)\(.*\)) for a result"
    expected = VALUES[1:].sum()

    def text(self, found: re.Match[str]) -> str:
        return found[1].replace("...", "carry + x[i]").replace("start", "0.0")


class RangeWithStep(NumberCase):
    function = staticmethod(lambda x: sum(x[i] for i in range(0, x.shape[0], 2)))
    remedy = r"write (jax\.lax\.scan\(lambda carry, i: \.\.\., start, jax\.numpy\.arange\(0, x\.shape\[0\], 2\)\))"
    expected = VALUES[::2].sum()

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1].replace('...', '(carry + x[i], None)').replace('start', '0.0')}[0]"


class RowsInLoop(NumberCase):
    function = staticmethod(lambda x: jnp.stack([2 * row for row in x]))
    remedy = (
        r"(jax\.vmap\(function\)\(x\)) computes .*, (jax\.lax\.scan\(step, carry, x\)) passes .* (x\.sum\(0\)) adds"
    )
    expected = VALUES.sum()

    def text(self, found: re.Match[str]) -> str:
        doubled = self.result(found[1].replace("function", "lambda row: 2 * row"))
        np.testing.assert_array_equal(doubled, 2 * VALUES)
        scanned = found[2].replace("step", "lambda c, row: (c + row, None)").replace("carry", "0.0")
        np.testing.assert_allclose(self.result(f"{scanned}[0]"), VALUES.sum())
        return found[3]


class RowsAdded(RowsInLoop):
    function = staticmethod(lambda x: sum(x))


class RowsGenerated(RowsInLoop):
    function = staticmethod(lambda x: sum(2 * row for row in x))


class RowsUnstacked(RowsInLoop):
    function = staticmethod(lambda x: jnp.unstack(x))


class IntOfSize(NumberCase):
    function = staticmethod(lambda x: x[: int(x.shape[0] // 2)])
    remedy = r"leave out int\(\): (x\.shape\[0\] // 2) is taken as it is in shapes, slices"
    expected = [0, 0, 0]

    def text(self, found: re.Match[str]) -> str:
        return f"0 * x[:{found[1]}]"


class IndexOfSize(NumberCase):
    function = staticmethod(lambda x: x * operator.index(x.shape[0]))
    remedy = r"leave out operator\.index\(\): (x\.shape\[0\]) is"
    expected = 6


class FloatOfSize(NumberCase):
    function = staticmethod(lambda x: x * float(x.shape[0]))
    remedy = r"leave out float\(\): arithmetic takes (.*) as it is, and (jax\.numpy\.float32\(x\.shape\[0\]\)) makes"
    expected = 12

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]} + {found[2]}"


class RoundedSize(NumberCase):
    function = staticmethod(lambda x: x * round(x.shape[0]))
    remedy = r"leave out round\(\): (x\.shape\[0\]) is a whole number"
    expected = 6


class FormattedSize(NumberCase):
    function = staticmethod(lambda x: x + len("%d" % x.shape[0]))  # noqa: UP031
    remedy = r"as in (f'\{size\}') or ('%s' % size), .*; (jax\.debug\.print\('\{\}', size\))"
    expected = 2

    def text(self, found: re.Match[str]) -> str:
        texts = [each.replace("size", "x.shape[0]") for each in found.groups()]
        assert self.result(f"({texts[2]}, 3)[1]") == 3
        return f"len({texts[0]} + {texts[1]})"


class FormattedByString(FormattedSize):
    function = staticmethod(lambda x: x + len(f"{x.shape[0]:3d}"))


class FormattedByMethod(FormattedSize):
    function = staticmethod(lambda x: x + len("{:d}".format(x.shape[0])))  # noqa: UP032


class Root(NumberCase):
    function = staticmethod(lambda x: x * math.sqrt(x.shape[0]))
    remedy = r"write (jax\.numpy\.sqrt\(x\.shape\[0\]\)) in place of math\.sqrt\(x\.shape\[0\]\)"
    expected = math.sqrt(6)


class RootByName(Root):
    function = staticmethod(lambda x: x * sqrt(x.shape[0]))
    remedy = r"write (jax\.numpy\.sqrt\(x\.shape\[0\]\)) in place of sqrt\("


class Logarithm(NumberCase):
    function = staticmethod(lambda x: x * math.log(x.shape[0], 2))
    remedy = r"write (.*) in place of math\.log\("
    expected = math.log2(6)


class Factorial(NumberCase):
    function = staticmethod(lambda x: x * math.factorial(x.shape[0]))
    remedy = r"write (jax\..*) in place of math\.factorial\("
    expected = 720


class WholeRoot(NumberCase):
    function = staticmethod(lambda x: x * math.isqrt(x.shape[0]))
    remedy = r"write (jax\..*); for a size, give the size as a number"
    expected = 2


class RoundedUp(NumberCase):
    error = jax.errors.ConcretizationTypeError
    function = staticmethod(lambda x: x[: math.ceil(x.shape[0] / 4)])
    remedy = r"write (-\(-x\.shape\[0\] // 4\)) in place of math\.ceil"
    expected = 2

    def provoke(self) -> Any:
        return compiled(self.function)


class PowerOfSize(NumberCase):
    function = staticmethod(lambda x: x * x.shape[0] ** 0.5)
    remedy = r"write (jax\.numpy\.power\(x\.shape\[0\], 0\.5\)), or (jax\.numpy\.sqrt\(size\)) for"
    expected = 2 * 6**0.5

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]} + {found[2].replace('size', 'x.shape[0]')}"


class NumpyOfSize(NumberCase):
    function = staticmethod(lambda x: x * np.sqrt(x.shape[0]))
    remedy = r"write (jax\.numpy\.sqrt) in place of np\.sqrt"
    expected = 6**0.5

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]}(x.shape[0])"


class NumpyZeros(NumberCase):
    function = staticmethod(lambda x: x + np.zeros(x.shape[0]))
    remedy = r"write (jax\.numpy\.zeros) in place of np\.zeros"
    expected = np.zeros(6)

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]}(x.shape[0])"


class NumpyTile(NumpyZeros):
    function = staticmethod(lambda x: x + np.tile(np.zeros(1), x.shape[0]))
    remedy = r"write (jax\.numpy\.tile) in place of np\.tile"

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]}(np.zeros(1), x.shape[0])"


class NumpyRandom(NumberCase):
    function = staticmethod(lambda x: x + np.random.rand(x.shape[0]))
    remedy = r"in place of np\.random\.rand .* such as (jax\.random\.uniform\(key, x\.shape\))"
    expected = np.zeros(6)

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1].replace('key', 'KEY')} // 1"


class NumpyArange(NumberCase):
    error = jax.errors.TracerBoolConversionError
    function = staticmethod(lambda x: x + np.arange(x.shape[0]))
    remedy = r"write (jax\.numpy\.arange) in place of np\.arange"
    expected = np.arange(6)

    def provoke(self) -> Any:
        return compiled(self.function)

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]}(x.shape[0])"


class PermutationOfSize(NumberCase):
    function = staticmethod(lambda x: x[jax.random.permutation(KEY, x.shape[0])])
    remedy = r"sort by random numbers: (jax\.numpy\.argsort\(.*\))"
    expected = np.arange(6)

    def text(self, found: re.Match[str]) -> str:
        return f"jax.numpy.sort({found[1]})"


class ChoiceOfSize(NumberCase):
    function = staticmethod(lambda x: x[jax.random.choice(KEY, x.shape[0], (3,))])
    remedy = r"write (jax\.random\.randint\(KEY, \(3,\), 0, x\.shape\[0\]\))"
    expected = np.zeros(3)

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]} // 6"


class ScanOfLength(NumberCase):
    function = staticmethod(lambda x: jax.lax.scan(lambda c, _: (c + 1, c), 0, None, length=x.shape[0])[1])
    remedy = r"give an array of that size: (jax\.lax\.scan\(step, carry, jax\.numpy\.arange\(x\.shape\[0\]\)\))"
    expected = np.arange(6)

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1].replace('step', 'lambda c, _: (c + 1, c)').replace('carry', '0')}[1]"


class IndexFromSize(NumberCase):
    function = staticmethod(lambda x: x[x.shape[0] - 1])
    remedy = r"write (x\[jax\.numpy\.asarray\(x\.shape\[0\] - 1\)\]), or (x\[-1\])"
    expected = [9, 9]

    def text(self, found: re.Match[str]) -> str:
        return f"jax.numpy.stack([{found[1]}, {found[2]}])"


class IndexOfList(NumberCase):
    function = staticmethod(lambda x: x * [10, 20, 30][x.shape[0] // 4])
    remedy = r"write (jax\.numpy\.asarray\(\[10, 20, 30\]\)\[.*\]) \["
    expected = 20


class BitsOfSize(NumberCase):
    function = staticmethod(lambda x: x * (x.shape[0] & 3))
    remedy = r"write (x\.shape\[0\] % 4) in place of x\.shape\[0\] & 3"
    expected = 2


class ShiftOfSize(NumberCase):
    function = staticmethod(lambda x: x * (x.shape[0] >> 1))
    remedy = r"write (x\.shape\[0\] // 2) in place of x\.shape\[0\] >> 1"
    expected = 3


class AlignedSize(NumberCase):
    function = staticmethod(lambda x: x * ((x.shape[0] + MASK) & ~MASK))
    remedy = r"write (\(x\.shape\[0\] \+ MASK\) // 4 \* 4) in place of x\.shape\[0\] \+ MASK & ~MASK"
    expected = 8


class InvertedSize(NumberCase):
    function = staticmethod(lambda x: x * ~x.shape[0])
    remedy = r"write (\(-x\.shape\[0\] - 1\)) in place of ~x\.shape\[0\]"
    expected = -7


class BitsOfSizes(NumberCase):
    function = staticmethod(lambda x: x if x.shape[0] & (x.shape[0] - 1) == 0 else -x)
    remedy = r"write (.*), which is an array, in place of x\.shape\[0\] & .* (jax\.lax\.cond\(.* != 0, \.\.\.\)), whose"
    expected = np.stack([4 + VALUES, 2 * VALUES])

    def text(self, found: re.Match[str]) -> str:
        branch = found[2].replace("...", "lambda: 2 * x, lambda: -x")
        return f"jax.numpy.stack([{found[1]} + x, {branch}])"


class ShiftByName(NumberCase):
    function = staticmethod(lambda x: x * (x.shape[0] << MASK))
    remedy = r"write (x\.shape\[0\] \* 8) in place of x\.shape\[0\] << MASK"
    expected = 48


class ComparedWithFraction(NumberCase):
    error = jax.errors.ConcretizationTypeError
    function = staticmethod(lambda x: x if x.shape[0] > 0.5 else -x)
    remedy = r"compare sizes with whole numbers: write (size >= 3) in place of size > 2\.5"
    expected = True

    def provoke(self) -> Any:
        return compiled(self.function)

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] == "size >= 3"
        return compiled(lambda x: x if x.shape[0] >= 1 else -x)(VALUES), VALUES


class SliceByFraction(NumberCase):
    error = IndexError
    function = staticmethod(lambda x: x[: x.shape[0] * 0.5])
    remedy = r"keeps a size a size: (x\.shape\[0\] // 2) or .* and (-\(-x\.shape\[0\] // 2\)) to round up"
    expected = 6

    def provoke(self) -> Any:
        return compiled(self.function)

    def text(self, found: re.Match[str]) -> str:
        return f"{found[1]} + {found[2]}"


class ComparedSize(NumberCase):
    function = staticmethod(lambda x: 2 * x if x.shape[0] > 4 else -x)
    remedy = r"by (jax\.lax\.cond\(jax\.numpy\.asarray\(x\.shape\[0\]\) > 4, \.\.\.\)), .*=\(\"(n >= 5)\",\)"
    expected = 2 * VALUES

    def text(self, found: re.Match[str]) -> str:
        stated = compiled(self.function, constraints=(found[2],))
        np.testing.assert_array_equal(stated(VALUES), self.expected)
        return found[1].replace("...", "lambda: 2 * x, lambda: -x")


class ComparedFromTheLeft(ComparedSize):
    function = staticmethod(lambda x: 2 * x if 4 < x.shape[0] else -x)  # noqa: SIM300
    remedy = r"by (jax\.lax\.cond\(jax\.numpy\.asarray\(4\) < x\.shape\[0\], \.\.\.\)), .*=\(\"(n >= 5)\",\)"


class ComparedShapes(ComparedSize):
    function = staticmethod(lambda x: 2 * x if x.shape > (4,) else -x)
    remedy = r"by (jax\.lax\.cond\(jax\.numpy\.asarray\(size\) > 4, \.\.\.\)), .*=\(\"(n >= 5)\",\)"

    def text(self, found: re.Match[str]) -> str:
        programs = shlo_disc.jit(self.function, dynamic="n", compile_once=False)
        for count in (3, 4, 5):
            x = VALUES[:count]
            np.testing.assert_array_equal(programs(x), self.function(x))
        return super().text(found).replace("size", "x.shape[0]")


class LargerShape(NumberCase):
    function = staticmethod(lambda x: x * max(x.shape, (4,))[0])
    remedy = r"Python compares tuples .* state which one holds for yours, constraints=\(\"(n >= 5)\",\)"
    expected = 6 * VALUES

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(self.function, constraints=(found[1],))(VALUES), self.expected


class LinspaceOfSize(NumberCase):
    function = staticmethod(lambda x: jnp.linspace(0, 1, x.shape[0]))
    remedy = r"traces: state which one holds for yours, constraints=\(\"(n >= 2)\",\)"
    expected = np.linspace(0, 1, 6)

    def follow(self, found: re.Match[str]) -> Numbers:
        return compiled(self.function, constraints=(found[1],))(VALUES), self.expected


class SpacedOfSize(NumberCase):
    function = staticmethod(lambda x: jnp.geomspace(1, 2, x.shape[0]))
    remedy = r"jax\.numpy\.geomspace takes numbers only .* the size as a number in args=, or (_) for it in dynamic="
    expected = np.geomspace(1, 2, 6)

    def follow(self, found: re.Match[str]) -> Numbers:
        fixed = compiled(self.function, ("6", "float32"))(VALUES)
        np.testing.assert_allclose(fixed, shlo_disc.jit(self.function, dynamic=found[1])(VALUES))
        return fixed, self.expected


class MethodOfInt(SpacedOfSize):
    function = staticmethod(lambda x: x * x.shape[0].bit_length())
    remedy = r"a size has no bit_length: .* such as jax.*; for a size, give the size as a number .* or (_) for it"
    expected = 3 * VALUES


class NumberInLibrary(SpacedOfSize):
    function = staticmethod(lambda x: x + random.Random(0).randrange(x.shape[0]) * 0)
    remedy = r"give the size as a number in args=, or (_) for it in dynamic="
    expected = VALUES
