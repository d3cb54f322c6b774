# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The largest value of a symbol with a property that bounds can exclude for whole intervals."""

from __future__ import annotations

from collections.abc import Callable

from .facts import Facts

LARGEST = 2**62
"""No size that a program is called with is greater."""


def largest_value(
    name: str, low: int, high: int, may_hold: Callable[[Facts], bool], holds: Callable[[int], bool]
) -> int | None:
    """The largest value of a symbol from `low` to `high` for which `holds` is true; None if there is none.

    may_hold: false where, by these facts about the symbol, no value holds. Other intervals are bisected.
    """
    intervals = _doubling(low, high)
    while intervals:
        first, last = intervals.pop()
        facts = Facts()
        facts.declare(name, first, last)
        if not may_hold(facts):
            continue
        if first < last:
            middle = (first + last) // 2
            intervals += [(first, middle), (middle + 1, last)]
        elif holds(first):
            return first
    return None


def _doubling(low: int, high: int) -> list[tuple[int, int]]:
    """Intervals that cover `low` to `high`, each twice as long as the one before."""
    intervals, first, length = [], low, 1
    while first <= high:
        intervals.append((first, min(first + length - 1, high)))
        first, length = first + length, 2 * length
    return intervals


__all__ = ["LARGEST", "largest_value"]
