# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays whose memory somebody else writes: what is remembered of an array is what its elements are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.runtime import Buffer
from tests.run.op_check import OnlyDlpack

ROWS = (1, 2, 3, 15, 16, 17, 64)


@pytest.fixture(autouse=True, params=["1", "0"], ids=["watched", "read"])
def _watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are found by watches of writes, and by reading."""
    monkeypatch.setenv("SHLO_DISC_WATCH_WRITES", request.param)


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An array at a multiple of 64 bytes, which JAX shares."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count].view(dtype).reshape(shape)


def numbers(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def owned_by_jax(array: np.ndarray) -> tuple[jax.Array, np.ndarray]:
    """A jax.Array of its own memory, and the view that a library gets by DLPack which does not mind who owns it."""
    mine = jnp.array(array, copy=True)
    memory = (ctypes.c_char * array.nbytes).from_address(mine.unsafe_buffer_pointer())
    return mine, np.frombuffer(memory, array.dtype).reshape(array.shape)


def buffer(array: np.ndarray) -> tuple[Buffer, np.ndarray]:
    """A Buffer, and a writable view of its elements."""
    mine = shlo_disc.compile(lambda x: -x, args=(("64, 96", "float32"),)).loaded.execute((-array,), output="buffer")
    view = np.from_dlpack(mine)
    memory = (ctypes.c_char * array.nbytes).from_address(view.ctypes.data)
    return mine, np.frombuffer(memory, array.dtype).reshape(array.shape)


SHARED: dict[str, Callable[[np.ndarray], tuple[Any, np.ndarray]]] = {
    "NumPy": lambda array: (array, array),
    "Buffer": buffer,
    "dlpack": lambda array: (jax.dlpack.from_dlpack(array), array),
    "device_put": lambda array: (jax.device_put(array), array),
    "may_alias": lambda array: (jax.device_put(array, may_alias=True), array),
    "owned by JAX": owned_by_jax,
}


@pytest.fixture(scope="module")
def product() -> shlo_disc.Executable:
    return compiled_product()


def compiled_product() -> shlo_disc.Executable:
    """Two products with one array of weights, which no call has packed yet."""
    return shlo_disc.compile(
        lambda w, x: jnp.tanh(x @ w) @ w.T,
        args=(("64, 96", "float32"), ("b, 64", "float32")),
        options=Options(guard_pages=True),
    )


def check(executable: Any, weights: Any, owner: np.ndarray, rows: int) -> None:
    x = numbers(rows, (rows, 64))
    want = np.tanh(x.astype(np.float64) @ owner) @ owner.T.astype(np.float64)
    np.testing.assert_allclose(executable(weights, x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", SHARED)
def test_the_owner_writes_between_calls(product: shlo_disc.Executable, kind: str) -> None:
    memory = aligned((64, 96))
    memory[:] = numbers(0, memory.shape)
    weights, owner = SHARED[kind](memory)
    if isinstance(weights, jax.Array):
        assert weights.unsafe_buffer_pointer() == owner.ctypes.data
    for rows in ROWS:
        for _ in range(3):
            check(product, weights, owner, rows)
    for seed, rows in enumerate(ROWS):
        owner[:] = numbers(seed + 1, owner.shape)
        check(product, weights, owner, rows)
        check(product, weights, owner, rows)


@pytest.mark.parametrize("place", [(0, 0), (63, 95), (31, 17)])
def test_one_element_is_written(product: shlo_disc.Executable, place: tuple[int, int]) -> None:
    weights, owner = owned_by_jax(numbers(0, (64, 96)))
    for _ in range(3):
        check(product, weights, owner, 17)
    owner[place] = -owner[place]
    check(product, weights, owner, 17)
    check(product, weights, owner, 17)


def test_all_signs_change_and_come_back(product: shlo_disc.Executable) -> None:
    weights, owner = owned_by_jax(numbers(0, (64, 96)))
    for _ in range(6):
        check(product, weights, owner, 17)
        check(product, weights, owner, 16)
        np.negative(owner, out=owner)


def test_an_array_that_changes_is_packed_no_more() -> None:
    product = compiled_product()
    before = product.memory_stats()["constant_bytes"]
    weights, owner = owned_by_jax(numbers(0, (64, 96)))
    for _ in range(2):
        check(product, weights, owner, 64)
    assert product.memory_stats()["constant_bytes"] > before
    owner[:] += 1
    for _ in range(3):
        check(product, weights, owner, 64)
    assert product.memory_stats()["constant_bytes"] == before
    other = jnp.asarray(owner) + 1
    for _ in range(3):
        check(product, other, owner + 1, 64)
    assert product.memory_stats()["constant_bytes"] > before
    check(product, np.array(owner), owner, 64)


NARROW = {"bfloat16": (ml_dtypes.bfloat16, 2e-2), "float16": (np.float16, 2e-3), "float64": (np.float64, 1e-9)}


@pytest.mark.parametrize("name", NARROW)
def test_other_element_types(name: str) -> None:
    dtype, tolerance = NARROW[name]
    with jax.enable_x64(True):
        program = shlo_disc.compile(lambda w, x: x @ w, args=(("64, 96", name), ("b, 64", name)))
        owner = aligned((64, 96), dtype)
        owner[:] = numbers(0, owner.shape).astype(dtype)
        weights = jax.device_put(owner)
        assert weights.unsafe_buffer_pointer() == owner.ctypes.data
        for turn in range(6):
            for rows in (1, 17):
                x = numbers(rows, (rows, 64)).astype(dtype)
                want = x.astype(np.float64) @ owner.astype(np.float64)
                got = np.asarray(program(weights, x)).astype(np.float64)
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=16 * tolerance)
            if turn > 2:
                owner[:] = numbers(turn, owner.shape).astype(dtype)


def test_products_that_are_joined_and_products_in_loops() -> None:
    def layers(params: Any, x: Any) -> Any:
        q, k, v = (x @ params[name] for name in "qkv")
        y = jax.lax.fori_loop(0, 3, lambda _, h: jnp.tanh(h @ params["loop"]), q * k + v)
        return jax.lax.cond(y.sum() > 0, lambda h: h @ params["q"], lambda h: h @ params["k"], y)

    shape = jax.ShapeDtypeStruct((48, 48), np.float32)
    names = ("q", "k", "v", "loop")
    program = shlo_disc.compile(layers, args=(dict.fromkeys(names, shape), ("b, 48", "float32")))
    owners = {name: aligned((48, 48)) for name in names}
    for number, owner in enumerate(owners.values()):
        owner[:] = numbers(number, owner.shape) / 7
    params = {name: jax.device_put(owner) for name, owner in owners.items()}
    for turn in range(8):
        x = numbers(turn, (17, 48))
        want = jax.jit(layers)({name: owner.copy() for name, owner in owners.items()}, x)
        np.testing.assert_allclose(program(params, x), want, rtol=1e-4, atol=1e-4)
        if turn >= 3:
            owners[names[turn % 4]][:] *= -1.5


def test_weights_of_a_convolution() -> None:
    def convolve(w: Any, x: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    program = shlo_disc.compile(convolve, args=(("3, 3, 32, 64", "float32"), ("n, 16, 16, 32", "float32")))
    owner = aligned((3, 3, 32, 64))
    owner[:] = numbers(0, owner.shape)
    weights = jax.device_put(owner)
    for turn in range(6):
        x = numbers(turn, (2, 16, 16, 32))
        want = jax.jit(convolve)(owner.copy(), x)
        np.testing.assert_allclose(program(weights, x), want, rtol=1e-3, atol=1e-3)
        if turn >= 2:
            owner[:] = numbers(turn, owner.shape)


# ---- bound arguments ---------------------------------------------------------------------------------------------


BOUND: dict[str, Callable[[np.ndarray], Any]] = {
    "jax": jax.device_put,
    "NumPy": lambda array: array,
    "DLPack": OnlyDlpack,
    "memory backwards": lambda array: array[::-1][::-1],
}


@pytest.mark.parametrize("kind", BOUND)
def test_what_is_bound_is_what_the_array_was(kind: str) -> None:
    """The prepacked form of the GEMM's weights is kept; the bias, read by no GEMM, is copied."""
    program = shlo_disc.compile(
        lambda w, b, x: x @ w + b, args=(("64, 96", "float32"), ("96", "float32"), ("b, 64", "float32"))
    )
    w, b = aligned((64, 96)), aligned((96,))
    w[:], b[:] = numbers(0, w.shape), numbers(1, b.shape)
    kept = w.copy(), b.copy()
    bound = program.bind(BOUND[kind](w), BOUND[kind](b))
    w[:], b[:] = np.nan, np.nan
    for rows in ROWS:
        x = numbers(rows, (rows, 64))
        np.testing.assert_allclose(bound(x), x @ kept[0] + kept[1], rtol=1e-4, atol=1e-4)
