# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gather: embedding lookups, take_along_axis, several indices, windows; indices out of range clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import DTYPES, Sizes, check, check_text, dtype_of, random_array

SIZES: list[Sizes] = [
    {"v": v, "d": d, "n": n}
    for v, d, n in [(1, 1, 1), (2, 3, 5), (7, 16, 15), (50, 17, 16), (3, 33, 17), (100, 1, 33), (13, 32, 97)]
]


def indices(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Mostly inside the smallest sizes, some far outside on both sides; floats and the rest are random."""
    if dtype not in ("int32", "int64", "uint32", "int8", "uint8"):
        return random_array(shape, dtype, seed)
    rng = np.random.default_rng(seed)
    found = rng.integers(-3 if dtype.startswith("int") else 0, 20, shape)
    # jax.export computes with indices of 64 bits, jax.jit with 32, where numbers beyond wrap around.
    extreme = min(np.iinfo(dtype).max, 2**31 - 1) if seed % 2 else max(np.iinfo(dtype).min, -(2**31))
    found.reshape(-1)[:: 7 + seed % 5] = extreme
    return found.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_embedding_lookup(dtype: str) -> None:
    def function(table: jax.Array, i: jax.Array, j: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(jnp.take(table, k, axis=axis, mode="clip") for k in (i, j) for axis in (0, 1))

    specs = [("v, d", dtype), ("n", "int32"), ("2, n", "uint32")]
    check(function, specs, SIZES if dtype == "float32" else SIZES[1::3], inputs=indices)


@pytest.mark.parametrize("index", ("int32", "int64", "uint32", "int8", "uint8"))
def test_index_dtypes_and_modes(index: str) -> None:
    def function(table: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
        kept = jnp.clip(i, 0, 0)
        return (
            jnp.take(table, i, axis=0, mode="clip"),
            jnp.take(table, i, axis=0, mode="fill", fill_value=-1),
            table.at[kept].get(mode="promise_in_bounds"),
            table[i],
        )

    check(function, [("v, d", "float32"), ("n", index)], SIZES, inputs=indices)


@pytest.mark.slow
def test_take_along_axis() -> None:
    def function(x: jax.Array, i: jax.Array, j: jax.Array) -> tuple[jax.Array, ...]:
        return (
            jnp.take_along_axis(x, i[:, None], axis=1),
            jnp.take_along_axis(x, j[None, :], axis=0),
            jnp.take_along_axis(x, i[:, None], axis=1, mode="clip")[:, 0] * 2,
            -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None], axis=-1, mode="clip").mean(),
        )

    specs = [("v, d", "float32"), ("v", "int32"), ("d", "int32")]
    check(function, specs, SIZES, inputs=indices, ulps=16)


@pytest.mark.slow
def test_several_indices_and_windows() -> None:
    def function(x: jax.Array, i: jax.Array, j: jax.Array) -> tuple[jax.Array, ...]:
        both = jnp.stack([i, j], axis=-1)
        first_axis = jnp.stack([i, j], axis=0)
        return (
            x[i, j],
            x[i][:, None, :] + x[j],
            lax.gather(x, both, numbers((), (0, 1), (0, 1)), (1, 1), mode="clip"),
            lax.gather(x, both, numbers((1, 2), (), (0, 1)), (1, 1), mode="clip"),
            lax.gather(x, both[:, ::-1], numbers((1,), (0,), (1, 0)), (1, 1), mode="clip"),
            lax.gather(x, i[:, None], numbers((1,), (0,), (0,)), (1, x.shape[1]), mode="clip"),
            lax.gather(x, i[:, None], numbers((0,), (1,), (1,)), (x.shape[0], 1), mode="clip"),
            lax.gather(x, i[:, None], numbers((0, 2), (), (0,)), (1, x.shape[1]), mode="clip"),
            lax.gather(x, first_axis.T.reshape(1, -1, 2), numbers((1,), (1,), (0, 1)), (1, 1), mode="clip"),
        )

    def numbers(offset: tuple[int, ...], collapsed: tuple[int, ...], start: tuple[int, ...]) -> Any:
        return lax.GatherDimensionNumbers(offset, collapsed, start)

    check(function, [("v, d", "float32"), ("n", "int32"), ("n", "int32")], SIZES, inputs=indices)


@pytest.mark.slow
def test_gathers_of_three_axes() -> None:
    def function(x: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
        return x[:, i], x[:, :, i], x[i, :, i], x[:, i, i], x[i[0]], x[:, i[0], 1], x[i][:, :, i]

    check(function, [("v, d, 3", "float32"), ("n", "int32")], SIZES, inputs=indices)


def test_batched() -> None:
    def function(x: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
        rows = jax.vmap(lambda a, b: jnp.take(a, b, axis=0, mode="clip"))
        last = jax.vmap(lambda a, b: jnp.take(a, b, axis=1, mode="clip"))
        inner = jax.vmap(lambda a, b: lax.dynamic_slice(a, (b, b * 0), (1, a.shape[1])))
        return rows(x, i), last(x, i), inner(x, i[:, 0]), jax.vmap(rows)(x[None], i[None])

    check(function, [("v, d, 3", "float32"), ("v, n", "int32")], SIZES, inputs=indices)


def test_fused_lookup() -> None:
    """Tokens, positions and a layer norm: the indices are computed, the rows are used at once."""

    def function(table: jax.Array, places: jax.Array, i: jax.Array) -> jax.Array:
        x = table[jnp.clip(i * 3 - 1, 0, 5)] + places[jnp.arange(i.shape[0])[::-1] // 2]
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    specs = [("v, d", "float32"), ("n, d", "float32"), ("n", "int32")]
    check(function, specs, [s for s in SIZES if s["d"] > 1], inputs=indices, ulps=32, floor=1.0)


GATHER = """func.func @main(%x: tensor<?x?xf32>, %i: tensor<?x{components}xi32>) -> {result} {{
  %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{numbers}>,
    indices_are_sorted = false, slice_sizes = array<i64: {sizes}>}}>
    : (tensor<?x?xf32>, tensor<?x{components}xi32>) -> {result}
  return %r : {result} }}"""

TEXT_ROWS: dict[str, dict[str, Any]] = {
    "window": {
        "components": 2, "sizes": "2, 3", "result": "tensor<?x2x3xf32>",
        "numbers": "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1",
    },
    "window_first": {
        "components": 2, "sizes": "2, 3", "result": "tensor<2x3x?xf32>",
        "numbers": "offset_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1",
    },
    "one_component": {
        "components": 1, "sizes": "1, 3", "result": "tensor<?x3xf32>",
        "numbers": "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [1], index_vector_dim = 1",
    },
    "no_vector_axis": {
        "components": 4, "sizes": "2, 1", "result": "tensor<?x2x4xf32>",
        "numbers": "offset_dims = [1], collapsed_slice_dims = [1], start_index_map = [0], index_vector_dim = 2",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", TEXT_ROWS)
def test_windows_of_plain_text(name: str) -> None:
    row = TEXT_ROWS[name]

    def call(v: int, d: int, n: int, seed: int) -> list[np.ndarray]:
        return [random_array((v, d), "float32"), indices((n, row["components"]), "int32", seed)]

    shapes = [(2, 3, 1), (5, 17, 16), (33, 7, 17), (3, 100, 33), (9, 9, 0)]
    executable = check_text(GATHER.format(**row), [call(*s, i) for i, s in enumerate(shapes)])
    with pytest.raises(shlo_disc.errors.ShapeError, match="gather"):
        executable(*call(1, 2, 3, 0))


def test_dynamic_gather() -> None:
    """Windows as long as an axis: the slice sizes are an operand."""

    def function(x: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
        windows: Callable[..., Any] = jax.vmap(lambda k: lax.dynamic_slice(x, (k, k * 0), (1, x.shape[1])))
        columns = jax.vmap(lambda k: lax.dynamic_slice(x, (k * 0, k), (x.shape[0], 1)))
        return windows(i), columns(i), x[i]

    executable = check(function, [("v, d", "float32"), ("n", "int32")], SIZES, inputs=indices)
    assert "stablehlo.dynamic_gather" in executable.as_text("import")


def test_small_dtypes_of_indices_reach_large_tables() -> None:
    def function(x: jax.Array, i: jax.Array) -> jax.Array:
        return x[i]

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return np.arange(shape[0]).astype(dtype_of(dtype)) if len(shape) == 1 else random_array(shape, dtype, seed)

    sizes = [{"v": 300, "n": 256}, {"v": 200, "n": 255}, {"v": 3, "n": 256}]
    check(function, [("v, 5", "float32"), ("n", "uint8")], sizes, inputs=inputs)


def test_sizes_of_indices_are_checked() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>, %i: tensor<?x?xi32>) -> tensor<?x?xf32> {
      %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
        operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>,
        slice_sizes = array<i64: 1, 1>}> : (tensor<?x?xf32>, tensor<?x?xi32>) -> tensor<?x?xf32>
      return %r : tensor<?x?xf32> }"""
    x = random_array((3, 5), "float32")
    executable = check_text(text, [[x, indices((3, n), "int32", n)] for n in (1, 16, 17)])
    with pytest.raises(shlo_disc.errors.ShapeError):
        executable(x, indices((4, 5), "int32", 0))
