# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows on GPUs: gradients of pooling, windows that are written in place, and concatenations of many pieces."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.gpu.checks import check, check_text, compiled
from tests.gpu.marks import needs_mock_driver
from tests.gpu.test_scatter import commands, is_atomic
from tests.run.op_check import Sizes, dtype_of, mlir_dtype, random_array, small_integers
from tests.run.test_concatenations import SHAPE, joined
from tests.run.test_ops_window import SELECT_AND_SCATTER, pool_gradient

pytestmark = needs_mock_driver

# ---- select_and_scatter ---------------------------------------------------------------------------------------------

IMAGES: list[Sizes] = [
    {"b": b, "h": h, "w": w, "c": c} for b, h, w, c in [(2, 3, 3, 1), (3, 5, 4, 3), (1, 3, 3, 1), (2, 7, 6, 5)]
]


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16", "float16"))
def test_gradient_of_max_pooling(dtype: str) -> None:
    """Windows overlap and elements are small integers: ties go to the first, sums are exact."""
    strided = pool_gradient((1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    same = pool_gradient((1, 3, 2, 1), (1, 1, 2, 1), "SAME")
    apart = pool_gradient((1, 2, 1, 1), (1, 3, 2, 1), "VALID")

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return strided(x, y), same(x, y), apart(x, y)

    sizes = IMAGES if dtype == "float32" else IMAGES[1:2]
    executable = check(function, [("b - 1, h, w, c", dtype), ("1", dtype)], sizes, inputs=small_integers)
    assert "select_and_scatter" in commands(executable) and not is_atomic(executable)


@pytest.mark.slow
def test_sums_are_added_in_the_order_of_windows() -> None:
    def weighted(x: jax.Array, y: jax.Array) -> jax.Array:
        return jax.grad(lambda a: (pooled(a) * y).sum())(x)

    def pooled(a: jax.Array) -> jax.Array:
        return jax.lax.reduce_window(a, -jnp.inf, jax.lax.max, (1, 5, 3, 1), (1, 1, 1, 1), "SAME")

    check(weighted, [("b - 1, h, w, c", "float32")] * 2, IMAGES)


PADDINGS = {
    "around": "[[1, 0], [0, 0], [1, 1]]",
    "far around": "[[3, 2], [0, 0], [4, 1]]",
    "cut off": "[[-1, 0], [0, 0], [0, -1]]",
}


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize(
    ("dtype", "body"), [("float32", "add"), ("int32", "maximum"), ("uint8", "multiply"), ("int64", "add")]
)
def test_select_and_scatter(dtype: str, body: str, padding: str) -> None:
    """Padding is never selected, and the initial value is where nothing is."""
    pairs: list[list[int]] = eval(PADDINGS[padding])  # noqa: S307
    window, strides = (2, 1, 3), (2, 1, 2)
    attributes = (
        "window_dimensions = array<i64: 2, 1, 3>, window_strides = array<i64: 2, 1, 2>, "
        f"padding = dense<{PADDINGS[padding]}> : tensor<3x2xi64>"
    )
    kind = mlir_dtype(dtype)
    text = SELECT_AND_SCATTER.replace("TENSOR", f"tensor<?x?x?x{kind}>").replace("SCALAR", f"tensor<{kind}>")
    calls = []
    for shape in [(3, 2, 5), (4, 7, 6), (5, 1, 9)]:
        spans = [d + sum(p) - w for d, p, w in zip(shape, pairs, window, strict=True)]
        counts = tuple(span // stride + 1 for span, stride in zip(spans, strides, strict=True))
        source = small_integers(counts, dtype, 3)
        calls.append([random_array(shape, dtype), source, np.array(2, dtype_of(dtype))])
    check_text(text.replace("BODY", body).replace("ATTRIBUTES", attributes), calls)


# ---- dynamic_update_slice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "int8", "bool", "float64"))
def test_windows_written_in_place(dtype: str) -> None:
    """Starts outside are moved so that the window fits."""

    def function(x: jax.Array, y: jax.Array, i: jax.Array, j: jax.Array) -> jax.Array:
        def body(step: Any, state: jax.Array) -> jax.Array:
            return jax.lax.dynamic_update_slice(state, y, (i + step, j - step))

        return jax.lax.fori_loop(0, 2, body, x)

    def places(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
        return np.asarray([-7, 1, 0, 100][seed % 4], kind) if not shape else random_array(shape, kind, seed)

    specs = [("n + 2, d - 1", dtype), ("3, d - 1", dtype), ("", "int32"), ("", "int32")]
    sizes = [{"n": n, "d": d} for n, d in ((1, 2), (2, 4), (5, 301), (2, 1))]
    executable = check(function, specs, sizes, inputs=places)
    assert "update" in commands(executable)


def test_vectors_and_scalars_written_in_place() -> None:
    def function(x: jax.Array, y: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
        def body(step: Any, states: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            long, one = states
            return jax.lax.dynamic_update_slice(long, jnp.sin(y) + step, (i + step,)), one + long[0]

        return jax.lax.fori_loop(0, 3, body, (x, jnp.float32(0)))

    def places(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
        return np.asarray(seed % 5, kind) if not shape else random_array(shape, kind, seed)

    sizes = [{"n": n + 1} for n in (0, 1, 5, 257)]
    check(function, [("n + 1", "float32"), ("n - 1", "float32"), ("", "int32")], sizes, inputs=places, ulps=4)


# ---- concatenate ----------------------------------------------------------------------------------------------------

PIECES: list[Sizes] = [{"b": 3, "d": n + 1} for n in (0, 1, 2, 7, 31)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "float64"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pieces_of_all_kinds(axis: int, dtype: str) -> None:
    """At the first of the sizes most pieces are empty."""

    sizes = PIECES if dtype == "float32" else PIECES[:3]
    executable = check(functools.partial(joined, axis=axis), [(SHAPE, dtype)] * 2, sizes, ulps=4, floor=1.0)
    assert "concatenate" in commands(executable)


def test_empty_pieces_between_others() -> None:
    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.concatenate([y, x, y, y, x * 2, x[:0], -x, y, x, y], 0)

    sizes = [{"n": n + 1, "m": m + 1} for n, m in ((0, 0), (0, 1), (1, 0), (37, 0), (3, 90))]
    check(function, [("n - 1, 2", "float32"), ("m - 1, 2", "float32")], sizes)


def test_a_stack_of_many_is_found_by_halving() -> None:
    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.stack([x, y, x + y, x * y] * 4, axis=1)

    specs = [("n - 1, d", "float32")] * 2
    check(function, specs, [{"n": 5, "d": 11}, {"n": 1, "d": 3}])
    text = compiled(function, specs).as_text("host")
    assert text.count("arith.cmpi ult") == 15


def test_a_window_that_data_places() -> None:
    def function(x: jax.Array, i: jax.Array) -> jax.Array:
        windows = [jax.lax.dynamic_slice_in_dim(x, i + k, 2) for k in range(12)]
        return jnp.concatenate(windows, axis=0)

    check(function, [("n + 2, d", "float32"), ("", "int32")], [{"n": 4, "d": 33}, {"n": 20, "d": 3}])
