# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about a value's elements: their range, whether they are exact, and how far two right answers differ.

A floating-point value is *exact* when every correct implementation computes the same number: all its elements are
multiples of 2**-step that the type represents. Exact values are compared for equality, and only they may reach ops
that are not continuous (comparisons, floor, conversions to integers). Everything else carries `error`, a bound on the
distance between a correct result and the true one, summed up along the chain; two correct results are at most twice
that apart. Nothing here depends on what an implementation returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
LARGEST = {"f16": 2.0**11, "bf16": 2.0**20, "f32": 2.0**20, "f64": 2.0**20}
"""Magnitudes stay below this, far from overflow."""
_STEPS = {"f16": 12, "bf16": 40, "f32": 40, "f64": 60}
_TINY = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


@dataclass(frozen=True)
class Range:
    """lo <= element <= hi.

    step: for floats, every element is a multiple of 2**-step; None when inexact or unbounded. error: see the module's
    text. A float range of -inf to inf includes infinities and NaN; only ops that move or compare take it.
    """

    lo: float
    hi: float
    step: int | None = 0
    error: float = 0.0

    @property
    def exact(self) -> bool:
        """Tells whether every correct implementation has the same elements."""
        return self.error == 0

    @property
    def wild(self) -> bool:
        """Tells whether NaN and infinities occur."""
        return math.isinf(self.lo) or math.isinf(self.hi)

    @property
    def most(self) -> float:
        """The largest magnitude."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def least(self) -> float:
        """The smallest magnitude, 0 when zero is in the range."""
        return 0.0 if self.lo <= 0 <= self.hi else min(abs(self.lo), abs(self.hi))


WILD = Range(-math.inf, math.inf, None)


def is_float(dtype: str) -> bool:
    """Tells whether an MLIR element type is one of the float types that the generator computes with."""
    return dtype in MANTISSA


def epsilon(dtype: str) -> float:
    """The distance from 1 to the next number."""
    return 2.0 ** (1 - MANTISSA[dtype])


def integer_limits(dtype: str) -> tuple[int, int]:
    """The smallest and the largest value of i1, iN or uiN."""
    if dtype == "i1":
        return 0, 1
    bits = int(dtype.lstrip("ui"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def full(dtype: str) -> Range:
    """Every value of an integer type."""
    return Range(*integer_limits(dtype))


def integer(dtype: str, lo: float, hi: float) -> Range:
    """The range of an integer result that wraps when it does not fit."""
    least, largest = integer_limits(dtype)
    return Range(lo, hi) if least <= lo and hi <= largest else full(dtype)


def rounded(dtype: str, lo: float, hi: float, step: int | None, error: float = 0.0, ulps: float = 1.0) -> Range | None:
    """The range of a float result that is rounded to `dtype`; None when it may come near overflow.

    `step` is that of the unrounded result, None when that is not a multiple of any; `ulps` bounds the op's own error.
    """
    most = max(abs(lo), abs(hi))
    if not most <= LARGEST[dtype] or not error <= LARGEST[dtype]:
        return None
    if step is not None and error == 0 and step <= _STEPS[dtype]:
        if math.ceil(math.log2(most + 1)) + step <= MANTISSA[dtype]:
            return Range(lo, hi, step)
    error += ulps * epsilon(dtype) * most + _TINY[dtype]
    return Range(lo - error, hi + error, None, error)
