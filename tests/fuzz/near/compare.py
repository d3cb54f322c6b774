# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results beside the reference's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.fuzz.near.reference.numbers import EPSILON, TINY, Number

SLACK = 4.0
"""Factor by which an error may exceed its bound: bounds are of the first order."""


@dataclass(frozen=True)
class Difference:
    """A difference in a result: `kind` is "nan" where NaN stands for a number, else "mismatch" or "type"."""

    kind: str
    text: str


def difference(got: Sequence[np.ndarray], want: Sequence[Number], dtypes: Sequence[str]) -> Difference | None:
    """The first result that is off by more than its error."""
    for number, (a, b, dtype) in enumerate(zip(got, want, dtypes, strict=True)):
        a = np.asarray(a)
        if a.shape != b.value.shape or a.dtype.name != dtype:
            return Difference("type", f"result {number} is {a.dtype}{list(a.shape)}, not {dtype}{list(b.value.shape)}")
        found = _difference(a, b, dtype)
        if found is not None:
            place, kind = found
            size = np.max(np.abs(b.value[np.isfinite(b.value)].astype(np.float64)), initial=0)
            return Difference(
                kind,
                f"result {number} {dtype}{list(a.shape)}: {a[place]!r}, not {b.value[place]!r} at {[*map(int, place)]}"
                f" (may be off by {b.errors[place]:.2g}; the largest is {size:.3g})",
            )
    return None


def _difference(a: np.ndarray, b: Number, dtype: str) -> tuple[tuple[int, ...], str] | None:
    errors = b.errors
    if dtype not in EPSILON:
        wrong = (a != b.value) & (errors == 0)
        return (tuple(np.argwhere(wrong)[0]), "mismatch") if wrong.any() else None
    got, want = a.astype(np.float64), b.value
    known = ~np.isinf(errors)
    with np.errstate(all="ignore"):
        limit = SLACK * errors + EPSILON[dtype] * np.abs(want) * (2 if b.error is not None else 0.5) + 2 * TINY[dtype]
        off = np.where(np.isfinite(want), ~(np.abs(got - want) <= limit), False)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
    off = np.where(np.isfinite(want), off, ~same) & known
    missing = np.isnan(got) & ~np.isnan(want) & known
    for mask, kind in ((missing, "nan"), (off, "mismatch")):
        if mask.any():
            return tuple(np.argwhere(mask)[0]), kind
    return None


def looseness(want: Sequence[Number], dtypes: Sequence[str]) -> float:
    """The share of elements of floats whose error is more than a hundred roundings of the largest, or unknown."""
    loose = total = 0
    for b, dtype in zip(want, dtypes, strict=True):
        if dtype not in EPSILON or not b.value.size:
            continue
        finite = np.abs(b.value[np.isfinite(b.value)])
        loose += int((b.errors > max(2e3 * EPSILON[dtype], 1e-3) * max(finite.max(initial=0), 1e-3)).sum())
        total += b.value.size
    return loose / total if total else 0.0
