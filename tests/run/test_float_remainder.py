# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The remainder of floats is exact: C's fmod, bit for bit, for all exponents, for quotients on both sides of a digit
of the long division, and for numbers that are no normal ones."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest
from jax import lax

import shlo_disc

COUNT = 20_000


def pairs(dtype: type) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Any bits; numbers at the limits; whole numbers; multiples of a number, and their neighbours."""
    rng, form = np.random.default_rng(0), np.finfo(dtype)
    word = np.uint32 if dtype == np.float32 else np.uint64
    yield tuple(rng.integers(0, np.iinfo(word).max, COUNT, word, endpoint=True).view(dtype) for _ in range(2))  # type: ignore[misc]
    limits: list[float] = [0, 1, 3, np.pi, np.inf, np.nan, *map(float, (form.tiny, form.smallest_subnormal, form.max))]
    digits = [2.0**k + d for k in (21, 22, 23, 24, 50, 51, 52, 53) for d in (-1, 0, 1)]
    signed: np.ndarray = np.array([*limits, *digits, *(-x for x in limits)], dtype)
    yield tuple(grid.ravel() for grid in np.meshgrid(signed, signed))
    yield rng.integers(0, 1 << 30, COUNT).astype(dtype), rng.integers(1, 1 << 12, COUNT).astype(dtype)
    step = dtype(1.1)
    multiples = rng.integers(1, 1 << 22, COUNT).astype(dtype) * step
    for to in (0, np.inf):
        yield np.nextafter(multiples, dtype(to)), np.full(COUNT, step)
    small: np.ndarray = (rng.standard_normal(COUNT) * 1e-3).astype(dtype)
    yield small, np.full(COUNT, 5 * form.smallest_subnormal)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact(dtype: type) -> None:
    with jax.enable_x64(True):
        executable = shlo_disc.compile(lax.rem, args=(("n", np.dtype(dtype).name), ("n", np.dtype(dtype).name)))
    for a, b in pairs(dtype):
        with np.errstate(invalid="ignore"):
            want = np.fmod(a, b)
        got = executable(a, b)
        np.testing.assert_array_equal(got, want)
        is_number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[is_number]), np.signbit(want[is_number]))
