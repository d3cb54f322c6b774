# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Division of rows by one number each: against division by IEEE 754, and which divisions are of that kind."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from shlo_disc.driver.compiler import Compilation, import_stage, run_pipeline
from tests.ir.gpu_cases import TARGETS, assert_close, emulated, layer_norm
from tests.ir.gpu_vectors import fused
from tests.run.op_check import random_array

F32 = np.float32
HUGE = np.finfo(F32).max


def by_largest(x: Any, y: Any) -> Any:
    return x / y.max(-1, keepdims=True)


@functools.cache
def lowered(function: Callable[..., Any], *arguments: tuple[str, str]) -> Compilation:
    with jax.enable_x64(True):
        return run_pipeline(import_stage(function, TARGETS[0], shlo_disc.Options(), arguments, None, ()), "host")


def neighbours(numbers: list[float]) -> np.ndarray:
    """Numbers and the f32 beside them, of both signs."""
    found = np.array(numbers, F32)
    with np.errstate(over="ignore"):
        found = np.concatenate([found, np.nextafter(found, F32(0)), np.nextafter(found, F32(np.inf))])
    return np.concatenate([found, -found])


def of_all_bits(count: int, seed: int) -> np.ndarray:
    """Floats of all magnitudes."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, np.uint64).astype(np.uint32).view(F32)


DIVISORS = np.concatenate(
    [
        neighbours([0, 2.0**-148, 2.0**-126, 2.0**-100, 2.0**-64, 1, 2, 3, 2.0**64, 2.0**100, 2.0**126, HUGE, np.inf]),
        F32([np.nan, 1.5, 7, 2048, 50257]),
        of_all_bits(150, 1),
    ]
)


def numerators(divisor: np.float32, seed: int) -> np.ndarray:
    """Numbers of all kinds, and those whose quotients are near a tie, near the least number, or near the largest."""
    random = np.random.default_rng(seed)
    ties = (1 + (2 * random.integers(0, 1 << 23, 300) + 1) * 2.0**-24) * 2.0 ** random.integers(-3, 3, 300)
    edges = [k * 2.0**-150 for k in range(1, 12)] + [2.0**-126, 2.0**-102, 2.0**127, 2.0**128 - 2.0**103]
    near = np.concatenate([ties, edges, 1 + np.arange(40) * 2.0**-23]) * np.float64(divisor)
    with np.errstate(all="ignore"):
        near = near.astype(F32)
    special = neighbours([0, 2.0**-126, 2.0**-62, 1, 2.0**64, HUGE, np.inf])
    return np.concatenate([near, np.nextafter(near, F32(0)), -near, special, F32([np.nan]), of_all_bits(500, seed)])


def by_kernel(x: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """The quotients of rows by a divisor each."""
    c = lowered(by_largest, *[("b, s", str(x.dtype))] * 2)
    assert str(c.snapshots["host"]).count("arith.divf") < str(c.snapshots["host"]).count("math.fma")
    (found,) = emulated(c, {"b": len(x), "s": x.shape[1]}, [x, np.broadcast_to(divisors[:, None], x.shape)])
    return found.view(x.dtype).reshape(x.shape)


def steps(x: np.ndarray) -> np.ndarray:
    """The number of an f32 among all in their order."""
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


@pytest.fixture(scope="module")
def divided() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numerators, quotients as the kernel computes them, and quotients that are rounded once."""
    x = np.stack([numerators(d, i) for i, d in enumerate(DIVISORS)])
    with np.errstate(all="ignore"):
        return x, by_kernel(x, DIVISORS), x / DIVISORS[:, None]


def test_quotients_are_within_a_step_of_ieee_754(divided: Any) -> None:
    x, found, wanted = divided
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])
    assert np.abs(steps(found) - steps(wanted))[is_number].max() <= 1
    is_special = is_number & (~np.isfinite(x) | (x == 0) | ~np.isfinite(DIVISORS[:, None]) | (DIVISORS[:, None] == 0))
    np.testing.assert_array_equal(found[is_special], wanted[is_special])
    assert is_special.sum() > 1000


def test_errors_are_below_the_bound(divided: Any) -> None:
    """Quotients of 2^-100 and more, compared in 64 bits of mantissa."""
    x, found, wanted = divided
    with np.errstate(all="ignore"):
        exact = x.astype(np.longdouble) / DIVISORS[:, None].astype(np.longdouble)
        error = np.abs(found - exact) / np.spacing(np.abs(wanted)).astype(np.longdouble)
    is_normal = np.isfinite(found) & np.isfinite(wanted) & (np.abs(wanted) >= 2.0**-100)
    assert is_normal.sum() > 100_000
    assert error[is_normal].max() < 0.5 + 2.0**-20
    is_exact = is_normal & (exact == wanted)
    assert is_exact.sum() > 5000
    np.testing.assert_array_equal(found[is_exact], wanted[is_exact])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_quotients_are_those_of_ieee_754(dtype: str) -> None:
    """All numerators, and divisors of all magnitudes."""
    type_ = np.dtype(np.float16 if dtype == "float16" else ml_dtypes.bfloat16)
    x = np.arange(1 << 16, dtype=np.uint16).view(type_)[None].repeat(6, 0)
    y = (np.arange(6) * 11083 % (1 << 15)).astype(np.uint16).view(type_)
    found = by_kernel(x, y)
    with np.errstate(all="ignore"):
        wanted = (x.astype(F32) / y.astype(F32)[:, None]).astype(type_)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[~np.isnan(wanted)], wanted[~np.isnan(wanted)])


def centred(x: Any) -> Any:
    """A norm by its standard deviation, whose divisor is computed along the whole row."""
    middle = x - x.mean(-1, keepdims=True)
    return middle / (jnp.sqrt((middle * middle).mean(-1, keepdims=True)) + jnp.zeros_like(x) + 1e-3)


ROWS = ("b, s", "float32")
TAKEN: dict[str, tuple[Callable[..., Any], tuple[tuple[str, str], ...]]] = {
    "softmax": (jax.nn.softmax, (ROWS,)),
    "several axes": (lambda x: x / x.sum((-1, -2), keepdims=True), (("b, s, 3", "float32"),)),
    "deviation": (centred, (ROWS,)),
    "in a reduction": (lambda x: jnp.max(x / jnp.max(jnp.abs(x), -1, keepdims=True), -1), (ROWS,)),
    "half": (jax.nn.softmax, (("b, s", "bfloat16"),)),
}
LEFT: dict[str, tuple[Callable[..., Any], tuple[tuple[str, str], ...]]] = {
    "doubles": (jax.nn.softmax, (("b, s", "float64"),)),
    "a number that is read": (lambda x, y: (x / y[:, None], x.max(-1)), (ROWS, ("b", "float32"))),
    "a number a column": (lambda x, y: (x / y, x.max(-1)), (ROWS, ("s", "float32"))),
    "an element": (lambda x: x.max(-1, keepdims=True) / x, (ROWS,)),
    "a place": (lambda x: (x / (1 + jnp.arange(x.shape[1], dtype=x.dtype)), x.max(-1)), (ROWS,)),
    "one a row": (lambda x: x.sum(-1) / x.max(-1), (ROWS,)),
    "a product": (layer_norm, (ROWS, ("s", "float32"), ("s", "float32"))),
}


@pytest.mark.parametrize("name", [*TAKEN, *LEFT])
def test_which_divisions_are_by_a_reciprocal(name: str) -> None:
    function, arguments = (TAKEN | LEFT)[name]
    c = lowered(function, *arguments)
    assert ("math.fma" in str(c.snapshots["host"])) == (name in TAKEN)
    for dims in ({"b": 3, "s": 5}, {"b": 1, "s": 1}, {"b": 9, "s": 300}):
        with jax.enable_x64(True):
            shapes = [tuple(eval(d, {}, dims) for d in text.split(",")) for text, _ in arguments]  # noqa: S307
            given = [random_array(s, dtype, i) for i, (s, (_, dtype)) in enumerate(zip(shapes, arguments, strict=True))]
            assert_close(emulated(c, dims, given), jax.jit(function)(*given), 2e-2 if name == "half" else 1e-5)


def test_the_emulator_rounds_sums_of_products_once() -> None:
    """A sum just below a tie, at which an f64 has no room for the difference."""
    a, b, c = (F32([x]) for x in (2.0**-12 * (1 + 2.0**-23), 2.0**-12 * (1 - 2.0**-23), 1 + 2.0**-23))
    assert F32(a.astype(np.float64) * b + c)[0] == 1 + 2.0**-22
    for sign in (1, -1):
        assert fused(a * F32(sign), b, c * F32(sign)).astype(F32)[0] == sign * (1 + 2.0**-23)
