# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that the op families build a random program from: a pool of values, random shapes, arguments and steps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence

from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.fuzz.program import Dims, Printer, Program, Render, Sizes, Step, Value
from tests.fuzz.ranges import WILD, Range, full, is_float

FLOATS = ("f32", "f32", "f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i32", "i64", "i8", "i16", "ui8", "ui16", "ui32", "ui64")
DTYPES = (*FLOATS, *FLOATS, *INTEGERS, "i1")

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47, 64, 65, 97)
"""Both sides of the vectors of 4 to 64 lanes, primes, small numbers."""
MOST_ELEMENTS = 6000
_RANKS = (0, 1, 1, 2, 2, 2, 3, 3, 4)

FLOAT_RANGES = (Range(-4, 4, 1), Range(0, 8, 0), Range(1, 4, 2), Range(-1, 1, 3), Range(-2, 2, 0), Range(0.5, 1.5, 2))
INTEGER_RANGES = (Range(-4, 4), Range(0, 3), Range(1, 9), Range(0, 40))
Pick = Callable[[Value], bool]


class Builder:
    """A program in the making. Families add steps; every random choice comes from `rng`."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.symbols = list("bsn")[: rng.choice((1, 1, 2, 2, 3))]
        self.sizes = self._random_sizes()
        self.pool: list[Value] = []
        self.steps: list[Step] = []
        self.required: list[Expr] = []

    def _random_sizes(self) -> list[Sizes]:
        calls: list[Sizes] = [dict.fromkeys(self.symbols, 1)]
        if self.rng.random() < 0.3:
            calls.append({name: self.rng.choice((0, 0, 2, 17)) for name in self.symbols})
        while len(calls) < 5:
            most = (97, 33, 17)[len(self.symbols) - 1]
            calls.append({name: self.rng.choice([s for s in SIZES if s <= most]) for name in self.symbols})
        return calls

    # ---- shapes -------------------------------------------------------------------------------------------------

    def at(self, dim: Expr) -> list[int]:
        """The values of a size in all calls."""
        return [dim.evaluate(sizes) for sizes in self.sizes]

    def most(self, dims: Sequence[Expr]) -> int:
        """The largest number of elements in any call."""
        return max(math.prod(d.evaluate(sizes) for d in dims) for sizes in self.sizes)

    def fits(self, dims: Sequence[Expr]) -> bool:
        """Tells whether no size is negative and no call has too many elements."""
        return all(min(self.at(d)) >= 0 for d in dims) and self.most(dims) <= MOST_ELEMENTS

    def dim(self) -> Expr:
        """A random size: a symbol, a constant or an expression."""
        kind = self.rng.random()
        symbol = Expr.symbol(self.rng.choice(self.symbols))
        if kind < 0.55:
            return symbol
        if kind < 0.85:
            return Expr.const(self.rng.choice((1, 1, 2, 3, 4, 5, 8, 16, 17)))
        other = Expr.symbol(self.rng.choice(self.symbols))
        return self.rng.choice((symbol + 1, 2 * symbol, symbol + other, symbol * other, symbol // 2, 3 * symbol + 2,
                                Expr.maximum(symbol, other), symbol % 4))  # fmt: skip

    def dims(self, rank: int | None = None) -> Dims:
        """A random shape, of any rank up to 4 or of the given one."""
        rank = self.rng.choice(_RANKS) if rank is None else rank
        while True:
            dims = tuple(self.dim() for _ in range(rank))
            if self.fits(dims):
                return dims

    # ---- values -------------------------------------------------------------------------------------------------

    def random_range(self, dtype: str) -> Range:
        """A range for an argument."""
        if dtype == "i1":
            return full(dtype)
        if not is_float(dtype):
            least = full(dtype).lo
            return self.rng.choice([r for r in (*INTEGER_RANGES, full(dtype)) if r.lo >= least])
        return WILD if self.rng.random() < 0.06 else self.rng.choice(FLOAT_RANGES)

    def argument(self, dtype: str, dims: Dims, range_: Range | None = None) -> Value:
        """A new argument; `range_` must be an exact one."""
        value = Value(dtype, dims, range_ or self.random_range(dtype))
        self.pool.append(value)
        return value

    def pick(self, fits: Pick = lambda _: True, dtypes: Sequence[str] = DTYPES, least_rank: int = 0) -> Value:
        """A value of the pool that fits, mostly a late one; else an argument of one of `dtypes`.

        The argument need not fit: check what it depends on beyond dtype and rank.
        """
        found = [v for v in self.pool if v.dtype in dtypes and v.rank >= least_rank and fits(v)]
        if found and self.rng.random() < 0.9:
            return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)
        return self.argument(
            self.rng.choice(dtypes), self.dims(self.rng.choice([r for r in _RANKS if r >= least_rank]))
        )

    def like(self, value: Value, fits: Pick = lambda _: True, range_: Range | None = None) -> Value:
        """A value of the same dtype and shape that fits, or an argument of the range."""
        found = [v for v in self.pool if v.dtype == value.dtype and v.dims == value.dims and fits(v)]
        if found and self.rng.random() < 0.6:
            return self.rng.choice(found)
        return self.argument(value.dtype, value.dims, range_)

    # ---- steps --------------------------------------------------------------------------------------------------

    def add(self, op: str, operands: Sequence[Value], dtype: str, dims: Sequence[Expr], range_: Range,
            attributes: str = "", render: Render | None = None) -> bool:  # fmt: skip
        """Append an op of one result; False, and nothing done, when the result would be too large."""
        if not self.fits(dims):
            return False
        result = Value(dtype, tuple(dims), range_)
        return self.add_results(op, operands, [result], render or generic(op, operands, [result], attributes))

    def add_results(self, op: str, operands: Sequence[Value], results: Sequence[Value], render: Render) -> bool:
        """Append an op of any number of results."""
        self.steps.append(Step(op, tuple(operands), tuple(results), render, tuple(self.required)))
        self.required = []
        self.pool += results
        return True

    def finish(self) -> Program:
        """The program: up to four values that no op uses are its results, and at times others."""
        made = [r for s in self.steps for r in s.results if r.dtype in DTYPES]
        used = {v for s in self.steps for v in s.operands}
        leaves = [v for v in made if v not in used]
        extra = self.rng.sample(made, min(len(made), self.rng.choice((0, 0, 1, 2))))
        results = list(dict.fromkeys([*leaves[-4:], *extra]))
        return Program(self.steps, results, self.sizes, named=self.rng.random() < 0.6).live()


def generic(op: str, operands: Sequence[Value], results: Sequence[Value], attributes: str = "") -> Render:
    """Prints an op whose attributes do not depend on the sizes."""

    def render(p: Printer, names: list[str], made: list[str]) -> None:
        p.op(op, names, [p.type(v) for v in operands], made, [p.type(v) for v in results], attributes)

    return render


def array(numbers: Iterable[int]) -> str:
    """An `array<i64: ...>` attribute."""
    listed = ", ".join(map(str, numbers))
    return f"array<i64: {listed}>" if listed else "array<i64>"
