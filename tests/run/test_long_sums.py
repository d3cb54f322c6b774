# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of many floats: as exact as XLA's, at lengths on both sides of a block, beside infinities and NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from shlo_disc.lowering.long_sums import BLOCK

SUMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "all": (lambda x: x.sum(), "n"),
    "rows": (lambda x: x.sum(1), "m, n"),
    "columns": (lambda x: x.sum(0), "n, m"),
    "both": (lambda x: x.sum(), "m, n"),
    "middle": (lambda x: x.sum(1), "2, n, m"),
    "outer and inner": (lambda x: x.sum((0, 2)), "n, m, 3"),
    "axes of size 1": (lambda x: x[:, ::-1].sum((1, 2)), "m, 1, n"),
    "all of one row": (lambda x: x[:, ::-1].sum(), "1, n"),
    "squares": (lambda x: (x * x).sum(-1), "m, n"),
    "cumulative": (lambda x: x.cumsum(1)[:, -3:], "m, n"),
    "cumulative columns": (lambda x: x.cumsum(0)[-3:], "n, m"),
    "cumulative from the end": (lambda x: jax.lax.cumsum(x, 1, reverse=True)[:, :3], "m, n"),
}
"""Functions of JAX's arrays; of NumPy's as well, but for those in OF_NUMPY."""

OF_NUMPY: dict[str, Callable[[np.ndarray], Any]] = {
    "cumulative from the end": lambda x: x[:, ::-1].cumsum(1)[:, -1:-4:-1],
}


ULPS = {"uniform": 2, "normal": 4, "alike": 32}
"""Numbers that are alike lose the same in every addition of a block, of 64 in cumulative sums."""


def shape_of(spec: str, **sizes: int) -> tuple[int, ...]:
    return tuple(sizes.get(d, 0) or int(d) for d in spec.split(", "))


def numbers(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(len(shape))
    return {
        "uniform": random.random(shape, np.float32),
        "normal": random.standard_normal(shape, np.float32),
        "alike": np.full(shape, 0.1, np.float32),
    }[kind]


@pytest.mark.parametrize("kind", ["uniform", "normal", "alike"])
@pytest.mark.parametrize("name", SUMS)
def test_errors_do_not_grow_with_the_length(name: str, kind: str) -> None:
    function, spec = SUMS[name]
    run = shlo_disc.compile(function, args=((spec, "float32"),))
    for n, m in ((100_000, 3), (1_000_000, 1)):
        x = numbers(kind, shape_of(spec, n=n, m=m))
        exact, sizes = (OF_NUMPY.get(name, function)(each.astype(np.float64)) for each in (x, np.abs(x)))
        error = np.abs(np.float64(run(x)) - exact)
        allowed = np.spacing(np.float32(np.abs(exact))) * ULPS[kind] + 2**-21 * sizes / n**0.5
        assert (error <= allowed).all(), (error / allowed).max()


@pytest.mark.parametrize("name", SUMS)
def test_lengths_around_a_block(name: str) -> None:
    """Small integers, whose sums are exact."""
    function, spec = SUMS[name]
    run = shlo_disc.compile(function, args=((spec, "float32"),))
    for n in (3, 4, 15, 16, 17, 31, 33, BLOCK * 4 - 1, BLOCK * 4 + 1, BLOCK * 32, BLOCK * 32 + 1, 2 * BLOCK * 32 + 17):
        x = np.random.default_rng(n).integers(-9, 9, shape_of(spec, n=n, m=5)).astype(np.float32)
        exact = OF_NUMPY.get(name, function)(x.astype(np.int64))
        np.testing.assert_array_equal(run(x), exact, err_msg=str(n))


@pytest.mark.parametrize("values", [(np.inf,), (-np.inf,), (np.inf, -np.inf), (np.nan,), (3e38, 3e38)])
def test_what_is_no_number(values: tuple[float, ...]) -> None:
    """An infinity stays one, wherever in the row it comes."""
    rows = shlo_disc.compile(lambda x: (x.sum(1), jnp.cumsum(x, 1)), args=(("m, n", "float32"),))
    columns = shlo_disc.compile(lambda x: x.sum(0), args=(("n, m", "float32"),))
    for n in (40, 2000):
        x = np.zeros((n, n), np.float32)
        for i, value in enumerate(values):
            x[np.arange(n), (np.arange(n) + 7 * i) % n] = value
        with np.errstate(invalid="ignore", over="ignore"):
            total, cumulative = rows(x)
            np.testing.assert_array_equal(total, x.sum(1))
            np.testing.assert_array_equal(columns(x.T.copy()), x.sum(1))
            np.testing.assert_array_equal(cumulative, np.cumsum(x, 1))


def test_other_types_and_reductions() -> None:
    x = np.random.default_rng(0).random((3, 100_000))
    with jax.enable_x64(True):
        double = shlo_disc.compile(lambda x: x.sum(1), args=(("m, n", "float64"),))
    np.testing.assert_allclose(double(x), x.astype(np.longdouble).sum(1).astype(np.float64), rtol=1e-15)
    half = shlo_disc.compile(lambda x: x.sum(1), args=(("m, n", "bfloat16"),))
    narrow = x.astype(ml_dtypes.bfloat16)
    np.testing.assert_allclose(np.float64(half(narrow)), np.float64(narrow).sum(1), rtol=2**-8)
    several = shlo_disc.compile(
        lambda x: (x.sum(1), x.max(1), x.argmax(1), (x > 0.5).sum(1)), args=(("m, n", "float32"),)
    )
    single = x.astype(np.float32)
    total, most, place, count = several(single)
    np.testing.assert_allclose(total, single.astype(np.float64).sum(1), rtol=2e-7)
    np.testing.assert_array_equal(most, single.max(1))
    np.testing.assert_array_equal(place, single.argmax(1))
    np.testing.assert_array_equal(count, (single > 0.5).sum(1))
