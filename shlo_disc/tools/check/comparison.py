# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results that each check accepts, as the reference implementation of the `check` dialect defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.dense import is_float


@dataclass(frozen=True)
class Comparison:
    """A check between two arrays.

    kind: "eq", equal values or equal bits, so that a NaN equals itself; "almost_eq", a difference of at most
    `tolerance`, NaN equal to NaN; "close", `min_ulps` to `max_ulps` representable numbers apart, NaN equal to NaN.
    """

    kind: str
    tolerance: float = 1e-4
    max_ulps: int = 1
    min_ulps: int = 0

    def problem(self, actual: np.ndarray, expected: np.ndarray) -> str:
        """The problem with `actual`, as text; empty when the check holds."""
        if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
            return f"{actual.dtype}{list(actual.shape)}, not {expected.dtype}{list(expected.shape)}"
        wrong = ~self._accepts(actual, expected)
        if not wrong.any():
            return ""
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return f"{wrong.sum()} of {wrong.size} elements, at {list(where)} {actual[where]!s}, not {expected[where]!s}"

    def _accepts(self, actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
        if actual.dtype.kind == "c":
            return self._accepts(actual.real, expected.real) & self._accepts(actual.imag, expected.imag)
        if self.kind == "eq":
            return np.asarray(actual == expected) | (is_float(actual.dtype) & (_bits(actual) == _bits(expected)))
        if not is_float(actual.dtype):
            raise TypeError(f"the check {self.kind} needs floating-point numbers, not {actual.dtype}")
        if self.kind == "close":
            distance = ulp_distance(actual, expected)
            return (distance >= np.uint64(self.min_ulps)) & (distance <= np.uint64(self.max_ulps))
        a, b = actual.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= self.tolerance)
        return near | (a == b) | (np.isnan(a) & np.isnan(b))


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number of representable numbers between, 0 between two NaNs; the largest uint64 where only one is finite."""
    finite = np.isfinite(a) & np.isfinite(b)
    order_a, order_b = _magnitude(a), _magnitude(b)
    same_side = _negative(a) == _negative(b)
    apart = np.where(order_a > order_b, order_a - order_b, order_b - order_a)
    distance = np.where(same_side, apart, order_a + order_b)
    equal = (_bits(a) == _bits(b)) | (np.isnan(a) & np.isnan(b))
    return np.where(equal, np.uint64(0), np.where(finite, distance, np.iinfo(np.uint64).max))


def _bits(a: np.ndarray) -> np.ndarray:
    return np.frombuffer(np.ascontiguousarray(a).tobytes(), f"u{a.dtype.itemsize}").reshape(a.shape).astype(np.uint64)


def _negative(a: np.ndarray) -> np.ndarray:
    return np.asarray(np.signbit(a))


def _magnitude(a: np.ndarray) -> np.ndarray:
    """The number of representable numbers from zero to |a|."""
    return _bits(np.abs(a))


def comparison(name: str, options: dict[str, Any], *, as_call: bool, is_integer: bool) -> Comparison:
    """The check called `name`, e.g. "expect_close".

    A custom call carries no tolerance and has its own defaults; "eq" compares integers exactly and floats by distance.
    Raises KeyError on a check that does not exist.
    """
    defaults = {"tolerance": 1e-3, "max_ulps": 3} if as_call else {}
    if name == "eq":
        return Comparison("eq") if is_integer else Comparison("almost_eq")
    kind = {"expect_eq": "eq", "expect_almost_eq": "almost_eq", "expect_close": "close"}[name]
    return Comparison(kind, **{**defaults, **options})


__all__ = ["Comparison", "comparison", "ulp_distance"]
