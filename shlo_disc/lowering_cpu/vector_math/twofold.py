# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers held as unevaluated sums of two floats (Dekker, "A floating-point technique for extending the available
precision"; Knuth, TAOCP 2, 4.2.2), with FMA for the exact products."""

from __future__ import annotations

from dataclasses import dataclass

from .lanes import Lanes


@dataclass(frozen=True, eq=False)
class Twofold:
    """high + low, |low| at most about an ulp of high."""

    high: Lanes
    low: Lanes

    def times(self, factor: Lanes) -> Twofold:
        high = self.high * factor
        return quick_two_sum(high, self.high.fma(factor, -high) + self.low * factor)

    def times_twofold(self, other: Twofold) -> Twofold:
        high = self.high * other.high
        error = self.high.fma(other.high, -high)
        return quick_two_sum(high, self.high.fma(other.low, self.low.fma(other.high, error)))

    def plus(self, number: float) -> Twofold:
        total = two_sum(self.high.const(number), self.high)
        return quick_two_sum(total.high, total.low + self.low)


def two_sum(a: Lanes, b: Lanes) -> Twofold:
    """a + b exactly."""
    total = a + b
    part = total - a
    return Twofold(total, (a - (total - part)) + (b - part))


def quick_two_sum(a: Lanes, b: Lanes) -> Twofold:
    """a + b exactly, for |a| >= |b| or a == 0."""
    total = a + b
    return Twofold(total, b - (total - a))


def two_product(a: Lanes, b: Lanes) -> Twofold:
    """a * b exactly, unless the error underflows."""
    high = a * b
    return Twofold(high, a.fma(b, -high))
