# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Divisions of floats by a divisor that all elements share: the quotients are those of IEEE 754, bit for bit.

XLA multiplies by the reciprocal of such a divisor, so NumPy is what results are compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import shlo_disc

DIVISORS = (3, 7, 10, 41, 49, 255, 1e-3, 1e30, 3e38, 1e-38, 1e-41, 0, np.inf, np.nan)
SIZES = (1, 15, 16, 17, 33, 1000)


def dividends(size: int, dtype: str) -> np.ndarray[Any, Any]:
    """Whole numbers, the ends of the range and what is no number."""
    whole = np.arange(1, size + 1, dtype=dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -7.5], dtype)
    whole[::9] = np.resize(special, whole[::9].size)
    return whole


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "an argument": lambda x, d: x / d,
    "a broadcast element": lambda x, d: x / jnp.broadcast_to(d, x.shape),
    "rows": lambda x, d: (x[None, :] / jnp.full((2, 1), d))[1],
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_by_a_value(form: str, dtype: str) -> None:
    with jax.enable_x64(True):
        compiled = shlo_disc.compile(FORMS[form], args=(("n", dtype), ("", dtype)))
    for size in SIZES:
        x = dividends(size, dtype)
        for divisor in DIVISORS:
            with np.errstate(all="ignore"):
                want = x / np.asarray(divisor, dtype)
            np.testing.assert_array_equal(compiled(x, np.asarray(divisor, dtype)), want)


@pytest.mark.parametrize("divisor", [3.0, 7.0, 41.0, 49.0, 255.0])
def test_by_a_constant(divisor: float) -> None:
    compiled = shlo_disc.compile(lambda x: (x / divisor, (x / divisor).astype(jnp.int32)), args=(("n", "float32"),))
    for size in (1, 16, 17, 4000):
        x = np.arange(1, size + 1, dtype=np.float32)
        quotients, whole = compiled(x)
        np.testing.assert_array_equal(quotients, x / np.float32(divisor))
        np.testing.assert_array_equal(whole, np.arange(1, size + 1) // int(divisor))


def test_by_a_size() -> None:
    compiled = shlo_disc.compile(
        lambda x: (jnp.arange(3 * x.shape[0]) / x.shape[0]).astype(jnp.int32), args=(("n", "float32"),)
    )
    for n in (1, 7, 41, 49, 100):
        np.testing.assert_array_equal(compiled(np.zeros(n, np.float32)), np.arange(3 * n) // n)
