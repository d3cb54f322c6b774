# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interpreter of small programs: reductions, windows, sorts, products and convolutions, beside XLA."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from tests.pjrt.interpreter import check, interpreted

FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32)
INTEGERS = (np.int8, np.int32, np.uint8, np.uint32)


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Whole numbers that all types have and whose sums they have, too, so that results are equal bit by bit."""
    return np.random.default_rng(seed).integers(0, 4, shape).astype(dtype)


def fractions(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Numbers around 0."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# ---- reductions ----------------------------------------------------------------------------------------------------


ALL_AXES = ((0,), (1,), (2,), (0, 2), (0, 1, 2), ())


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 17, 2), (2, 0, 3), (2, 3, 0)], ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_reductions(name: str, shape: tuple[int, ...]) -> None:
    ops = {"sum": lax.reduce_sum_p, "max": lax.reduce_max_p, "min": lax.reduce_min_p, "prod": lax.reduce_prod_p}
    parameters = {"out_sharding": None} if name == "sum" else {}
    x = np.minimum(numbers(shape, np.int32), 2) if name != "prod" else np.maximum(numbers(shape, np.int32) % 3, 1)
    check(lambda *arrays: [ops[name].bind(array, axes=axes, **parameters) for array in arrays for axes in ALL_AXES],
          *(x.astype(dtype) for dtype in (*FLOATS, *INTEGERS)))  # fmt: skip


@pytest.mark.parametrize("shape", [(4,), (3, 33), (0,), ()], ids=str)
def test_reductions_of_booleans(shape: tuple[int, ...]) -> None:
    x = numbers(shape, np.int32) > 1
    check(lambda x: (jnp.any(x), jnp.all(x)), x)


def test_nans_win() -> None:
    x = fractions((5, 40))
    x[2, 17], x[3, 0], x[4, 39] = np.nan, np.nan, np.nan
    check(lambda x: (x.max(1), x.min(1), x.max(0), x.min(0)), x)


@pytest.mark.parametrize("length", [2, 17, 40])
def test_sums_of_negative_zeros(length: int) -> None:
    """They are -0 where they begin with it: a sum may not begin with 0 on its own."""

    def add(a: Any, b: Any) -> Any:  # not lax.add, for which JAX would begin with 0
        return a + b

    def bits(x: Any) -> Any:
        return lax.bitcast_convert_type(lax.reduce(x, np.float32(-0.0), add, (0,)), jnp.int32)

    check(lambda x: (bits(x), bits(jnp.stack([x, x], 1))), np.full(length, -0.0, np.float32))


def test_long_sums_are_as_exact_as_those_of_vectors() -> None:
    x = fractions((3, 100_001)) + 1
    exact = x.astype(np.float64).sum(1)
    check(lambda x: x.sum(1), x, ulps=64)
    np.testing.assert_allclose(interpreted(lambda x: x.sum(1), x)[0], exact, rtol=1e-6)


def test_sums_of_16_bits_are_rounded_once() -> None:
    check(lambda x: x.sum(), np.full(5000, 1, np.float16))
    check(lambda x: x.sum(0), np.full((3000, 2), 0.5, ml_dtypes.bfloat16))


@pytest.mark.parametrize("shape", [(4, 6), (1, 9), (7, 1)], ids=str)
def test_reductions_of_several_operands(shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.int8):
        check(lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.argmax(x)), numbers(shape, dtype))


def test_bodies_of_several_ops() -> None:
    def body(a: Any, b: Any) -> Any:
        return a + 2 * b + 1

    check(lambda x: lax.reduce(x, np.int32(3), body, (1,)), numbers((4, 6), np.int32))
    check(lambda x: lax.reduce(x, np.int32(3), lambda a, b: a - b, (1,)), numbers((4, 6), np.int32))
    check(lambda x: lax.reduce(x, np.int32(3), lambda a, b: b, (1,)), numbers((4, 6), np.int32))


# ---- windows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_windows(seed: int) -> None:
    chance = np.random.default_rng(seed)

    def some(least: int, most: int) -> tuple[int, ...]:
        return tuple(int(n) for n in chance.integers(least, most + 1, 3))

    shape, window, strides, dilations, bases = some(1, 9), some(1, 4), some(1, 3), some(1, 2), some(1, 3)
    padding = tuple(zip(some(-1, 3), some(-1, 3), strict=True))
    x = numbers(shape, np.int32, seed)

    bodies = ((0, lax.add), (5, lax.add), (-(2**31), lax.max), (7, lax.min), (1, lax.mul))

    def run(x: Any) -> Any:
        return [lax.reduce_window(x, np.int32(initial), body, window, strides, padding, bases, dilations)
                for initial, body in bodies]  # fmt: skip

    check(run, x)


@pytest.mark.parametrize("bases", [(1, 1), (2, 3)], ids=str)
def test_windows_of_several_arrays(bases: tuple[int, int]) -> None:
    def largest(a: Any, b: Any) -> Any:
        is_larger = b[0] > a[0]
        return tuple(jnp.where(is_larger, y, x) for x, y in zip(a, b, strict=True))

    def run(*arrays: Any) -> Any:
        return lax.reduce_window(arrays, (np.int32(-1), np.int32(-1)), largest, (2, 3), (1, 2), ((1, 0), (0, 2)), bases)

    check(run, numbers((5, 7), np.int32), np.arange(35, dtype=np.int32).reshape(5, 7))


@pytest.mark.parametrize("length", [0, 1, 2, 31])
def test_running_sums(length: int) -> None:
    def run(x: Any) -> Any:
        return jnp.cumsum(x, 0), lax.cummax(x, axis=1), lax.cumprod(x, axis=0, reverse=True)

    x = np.minimum(numbers((length, 3), np.int32), 1)
    check(lambda *arrays: [run(array) for array in arrays],
          *(x.astype(dtype) for dtype in (np.float16, np.float32, np.int32)))  # fmt: skip


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
def test_pooling_and_its_gradient(padding: str, strides: tuple[int, int]) -> None:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (3, 2), strides, padding)

    x = fractions((7, 9))
    check(pool, x)
    check(jax.grad(lambda x: (pool(x) * 3).sum()), x)
    check(jax.grad(lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 2), strides, padding).sum()), x)


# ---- sorts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 33, 100])
def test_sorts(length: int) -> None:
    x = fractions((3, length), seed=length)
    x[:, ::5], x[:, 1::7], x[:, 2::9] = np.nan, -0.0, 0.0

    def run(x: Any) -> Any:  # as bits, by which -0 is not 0
        return [lax.bitcast_convert_type(jnp.sort(x, axis=axis), jnp.int32) for axis in (0, 1)], jnp.argsort(x, axis=1)

    check(run, x)
    check(lambda x: jnp.sort(x, axis=1, descending=True), numbers((3, length), np.uint8))


def test_sorts_of_several_arrays() -> None:
    keys, values = numbers((40,), np.int32), np.arange(40, dtype=np.int16)
    check(lambda k, v: lax.sort((k, v), num_keys=1, is_stable=True), keys, values)
    check(lambda k, v: lax.sort((k, v, v * 2.0), num_keys=2), keys, values)
    check(lambda x: lax.top_k(x, 5), fractions((3, 20)))


# ---- products ------------------------------------------------------------------------------------------------------

PRODUCTS = (
    ((3, 4), (4, 5), ((1,), (0,)), ((), ())),
    ((3, 4), (5, 4), ((1,), (1,)), ((), ())),
    ((4,), (4,), ((0,), (0,)), ((), ())),
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,))),
    ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0)), ((), ())),
    ((2, 3), (4, 5), ((), ()), ((), ())),
    ((3, 0), (0, 5), ((1,), (0,)), ((), ())),
    ((0, 3), (3, 5), ((1,), (0,)), ((), ())),
    ((17, 31), (31, 19), ((1,), (0,)), ((), ())),
    ((5, 37), (37,), ((1,), (0,)), ((), ())),
    ((0, 2**20, 1), (0, 1, 2**20), ((2,), (1,)), ((0,), (0,))),
)


@pytest.mark.parametrize("row", PRODUCTS, ids=lambda row: f"{row[0]}x{row[1]}")
def test_products(row: Any) -> None:
    left, right, contracted, batch = row
    dtypes = (*FLOATS, np.int8, np.int32, np.uint32, np.complex64)
    check(lambda *pairs: [lax.dot_general(a, b, (contracted, batch)) for a, b in pairs],
          *((numbers(left, dtype), numbers(right, dtype, 1)) for dtype in dtypes))  # fmt: skip


@pytest.mark.parametrize("types", [(np.int8, np.int8, np.int32), (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
                                   (np.uint8, np.uint8, np.uint32), (np.float16, np.float16, np.float32)],
                         ids=lambda types: np.dtype(types[0]).name)  # fmt: skip
def test_products_into_other_types(types: Any) -> None:
    left, right, result = types
    a, b = numbers((5, 300), left), numbers((300, 4), right, 1)
    check(lambda a, b: lax.dot(a, b, preferred_element_type=result), a, b)


def test_integers_wrap_around() -> None:
    x = np.full((2, 9), 100, np.int8)
    check(lambda x: (x @ x.T, x.sum(0), lax.reduce_prod_p.bind(x, axes=(1,))), x)


def test_infinite_complex_numbers() -> None:
    """Their products are what the four products of their parts give, NaNs too."""
    x = np.array([[complex(np.inf, np.inf)], [complex(np.inf, 0)]], np.complex64)
    check(lambda x, y: (x @ y, jnp.concatenate([x] * 3, 1).prod(1)), x, np.array([[2 - 1j]], np.complex64))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128], ids=lambda dtype: dtype.__name__)
def test_types_of_64_bits(dtype: Any) -> None:
    def run(x: Any, y: Any) -> Any:
        convolved = lax.conv(x[None], y.T[:, :4, None], (2,), "SAME")
        return x.sum(0), x.sum(1), x.prod(1), jnp.cumsum(x, 1), jnp.sort(x, 1), x @ y, convolved

    with jax.enable_x64(True):
        check(run, numbers((4, 33), dtype), numbers((33, 7), dtype, 1))


def test_products_are_exact_to_rounding() -> None:
    a, b = fractions((40, 70)), fractions((70, 30), seed=1)
    check(lambda a, b: a @ b, a, b, absolute=2e-5)


# ---- convolutions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_convolutions(seed: int) -> None:
    chance = np.random.default_rng(seed)
    spatial = int(chance.integers(0, 4))

    def some(least: int, most: int) -> tuple[int, ...]:
        return tuple(int(n) for n in chance.integers(least, most + 1, spatial))

    feature_groups, batch_groups = ((1, 1), (2, 1), (1, 2), (3, 1))[seed % 4]
    channels, features = int(chance.integers(1, 4)), 6 * int(chance.integers(1, 3))
    window, size = some(1, 3), some(3, 7)
    x = numbers((2 * batch_groups, channels * feature_groups, *size), np.float32, seed)
    w = numbers((features, channels, *window), np.float32, seed + 1)
    letters = "HWD"[:spatial]
    orders = (
        (f"N{letters}C", f"O{letters}I", f"{letters}NC")
        if seed % 2
        else (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    )
    x = np.moveaxis(x, 1, -1) if seed % 2 else x
    w = np.moveaxis(w, 1, -1) if seed % 2 else w
    options = {
        "window_strides": some(1, 2), "padding": tuple(zip(some(-1, 2), some(0, 2), strict=True)),
        "lhs_dilation": some(1, 3), "rhs_dilation": some(1, 2), "dimension_numbers": orders,
        "feature_group_count": feature_groups, "batch_group_count": batch_groups,
    }  # fmt: skip

    def run(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, **options)

    def run_all(x: Any, w: Any) -> Any:
        gradients = jax.grad(lambda x, w: run(x, w).sum(), (0, 1))(x, w) if batch_groups == 1 else ()
        return run(x, w), run(x.astype(jnp.float16), w.astype(jnp.float16)), gradients

    check(run_all, x, w)
