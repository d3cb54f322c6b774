# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scatter: windows, batches, several operands, any combiner; updates whose window leaves the operand are dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import DTYPES, Sizes, check, check_text, random_array, small_integers

SIZES: list[Sizes] = [
    {"v": v, "d": d, "n": n}
    for v, d, n in [(1, 1, 1), (2, 3, 5), (7, 16, 15), (50, 17, 16), (3, 33, 17), (100, 1, 33), (13, 32, 97)]
]


def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Indices mostly inside, some outside on both sides; small numbers, whose sums are exact in any order."""
    if dtype in ("int32", "uint32"):
        rng = np.random.default_rng(seed)
        return rng.integers(-3 if dtype == "int32" else 0, 20, shape).astype(dtype)
    return small_integers(shape, dtype, seed)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_rows_and_elements(dtype: str) -> None:
    def function(x: jax.Array, i: jax.Array, row: jax.Array, one: jax.Array) -> tuple[jax.Array, ...]:
        return x.at[i].add(row), x.at[i, i].max(one), x.at[:, i].multiply(row.T[:1], mode="drop")

    specs = [("v, d", dtype), ("n", "int32"), ("n, d", dtype), ("n", dtype)]
    check(function, specs, SIZES if dtype == "float32" else SIZES[1::3], inputs=inputs)


def test_booleans() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return x.at[i].set(y[:, None]), x.at[i, 0].max(y)

    check(function, [("v, d", "bool"), ("n", "int32"), ("n", "bool")], SIZES[1::3], inputs=inputs)


def test_order_of_updates() -> None:
    """The last of several updates of one element stays."""

    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        rows = jnp.broadcast_to(y[:, None], (y.shape[0], x.shape[1]))
        return x.at[i].set(rows), x.at[i % 2, 0].set(y), x.at[i].apply(lambda v: v * 2 + 1)

    check(function, [("v, d", "float32"), ("n", "int32"), ("n", "float32")], SIZES, inputs=inputs, static=2)


def test_batches() -> None:
    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        along = jax.vmap(lambda a, j, b: a.at[j].add(b))
        twice = jax.vmap(jax.vmap(lambda a, j, b: a.at[j].min(b)))
        return along(x, i, y), twice(jnp.stack([x, x + 1]), jnp.stack([i, i]), jnp.stack([y, y]))

    check(function, [("v, d", "float32"), ("v, n", "int32"), ("v, n", "float32")], SIZES, inputs=inputs)


def gradients_of_gathers(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """Gradients of gathers of rows, and of elements."""
    rows = jax.grad(lambda t: (t[i] * y[:, None]).sum())(x)
    elements = jax.grad(lambda t: (jnp.take_along_axis(t, i[None] % t.shape[1], axis=1) * y).sum())(x)
    return rows, elements


def segments_and_counts(x: jax.Array, i: jax.Array) -> tuple[jax.Array, ...]:
    """Sums and extremes by segment, a histogram, and numbers written into a matrix."""
    return (
        jax.ops.segment_sum(x, i, num_segments=7),
        jax.ops.segment_max(x, i, num_segments=7),
        jnp.bincount(i, length=9),
        jnp.zeros((5, x.shape[0]), x.dtype).at[i % 5, jnp.arange(x.shape[0])].set(x),
    )


def test_gradients_of_gathers() -> None:
    check(gradients_of_gathers, [("v, d", "float32"), ("n", "int32"), ("n", "float32")], SIZES, inputs=inputs)


def test_segments_and_counts() -> None:
    check(segments_and_counts, [("n", "float32"), ("n", "int32")], SIZES, inputs=inputs)


START: dict[str, tuple[str, float, bool]] = {
    "zeros": ("float32", 0.0, True),
    "negative zeros": ("float32", -0.0, False),
    "ones": ("float32", 1.0, False),
    "integers": ("int32", 0, True),
    "half floats": ("bfloat16", 0.0, True),
    "booleans": ("bool", 0, True),
}


@pytest.mark.parametrize("start", START)
def test_constants_to_start_from(start: str) -> None:
    """Zeros are written in whole blocks, anything else by the kernel."""
    dtype, value, is_cleared = START[start]

    def function(x: jax.Array, i: jax.Array, one: jax.Array) -> tuple[jax.Array, ...]:
        rows, elements = jnp.full((40, x.shape[1]), value, dtype), jnp.full((x.shape[1],), value, dtype)
        return rows.at[i].max(x), elements.at[i].set(one)

    specs = [("n, d", dtype), ("n", "int32"), ("n", dtype)]
    executable = check(function, specs, SIZES[2::2], inputs=inputs)
    assert [kernel.kind for kernel in executable.kernels].count("clear") == 2 * is_cleared


SCATTER = """func.func @main(%x: tensor<?x?xf32>, %i: {indices}, %u: {update}) -> tensor<?x?xf32> {{
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>,
    indices_are_sorted = false, unique_indices = false}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      {body}
      stablehlo.return %s : tensor<f32>
  }}) : (tensor<?x?xf32>, {indices}, {update}) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32> }}"""

ADD = "%s = stablehlo.add %a, %b : tensor<f32>"

NUMBERS: dict[str, tuple[str, str, str, Callable[[int], tuple[int, ...]]]] = {
    "windows": (
        "tensor<?x2xi32>", "tensor<?x2x3xf32>",
        "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
        lambda n: (n, 2, 3),
    ),
    "windows first, components swapped": (
        "tensor<?x2xi32>", "tensor<2x3x?xf32>",
        "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1",
        lambda n: (2, 3, n),
    ),
    "one component, in front": (
        "tensor<1x?xi32>", "tensor<?x3xf32>",
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 0",
        lambda n: (n, 3),
    ),
    "no vector axis": (
        "tensor<?x2xi32>", "tensor<?x2x4xf32>",
        "update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 2",
        lambda n: (n, 2, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_dimension_numbers(name: str) -> None:
    index_type, update, numbers, shape = NUMBERS[name]

    def call(v: int, d: int, n: int) -> list[np.ndarray]:
        index_shape = tuple(int(s) if s.isdigit() else n for s in index_type[7:].split("x")[:-1])
        arrays = [small_integers((v, d), "float32"), inputs(index_shape, "int32", n)]
        return [*arrays, small_integers(shape(n), "float32", 1)]

    text = SCATTER.format(indices=index_type, update=update, numbers=numbers, body=ADD)
    executable = check_text(text, [call(*s) for s in [(2, 4, 1), (5, 17, 16), (17, 5, 33), (20, 20, 0)]])
    with pytest.raises(shlo_disc.errors.ShapeError, match="scatter"):
        executable(*call(2, 2, 3))
    x, i, u = call(5, 17, 16)
    with pytest.raises(shlo_disc.errors.ShapeError):
        executable(x, inputs(tuple(s + (s == 16) for s in i.shape), "int32", 0), u)


BODIES = {
    "set": "%s = stablehlo.reshape %b : (tensor<f32>) -> tensor<f32>",
    "keep": "%s = stablehlo.reshape %a : (tensor<f32>) -> tensor<f32>",
    "mixed": """%k = stablehlo.constant dense<0.5> : tensor<f32>
      %c = stablehlo.multiply %a, %k : tensor<f32>
      %p = stablehlo.compare LT, %c, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %s = stablehlo.select %p, %c, %b : tensor<i1>, tensor<f32>""",
    "of the update alone": "%s = stablehlo.negate %b : tensor<f32>",
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    index_type, update, numbers, _ = NUMBERS["no vector axis"]
    body = BODIES[name].replace("stablehlo.reshape", "stablehlo.convert")
    text = SCATTER.format(indices=index_type, update=update, numbers=numbers, body=body)

    def call(v: int, d: int, n: int) -> list[np.ndarray]:
        shapes: Sequence[tuple[int, ...]] = [(v, d), (n, 2, 4)]
        x, u = (small_integers(s, "float32", i) for i, s in enumerate(shapes))
        return [x, inputs((n, 2), "int32", n), u]

    check_text(text, [call(*s) for s in [(1, 4, 1), (5, 17, 16), (33, 4, 33)]])


@pytest.mark.parametrize("used", ((0, 1), (1,), (0,)))
def test_several_operands(used: tuple[int, ...]) -> None:
    """Pairs of a key and a value; the pair with the larger key stays. A result that nothing reads is written, too."""

    names = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    results = ", ".join(f"%r#{i}" for i in used)
    types = ", ".join(["tensor<?xf32>", "tensor<?xi32>"][i] for i in used)
    text = f"""func.func @main(%x: tensor<?xf32>, %y: tensor<?xi32>, %i: tensor<?x1xi32>, %u: tensor<?xf32>,
        %w: tensor<?xi32>) -> ({types}) {{
      %r:2 = "stablehlo.scatter"(%x, %y, %i, %u, %w) <{{scatter_dimension_numbers = #stablehlo.scatter<{names}>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
          %p = stablehlo.compare LT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %s = stablehlo.select %p, %c, %a : tensor<i1>, tensor<f32>
          %t = stablehlo.select %p, %d, %b : tensor<i1>, tensor<i32>
          stablehlo.return %s, %t : tensor<f32>, tensor<i32>
      }}) : (tensor<?xf32>, tensor<?xi32>, tensor<?x1xi32>, tensor<?xf32>, tensor<?xi32>)
        -> (tensor<?xf32>, tensor<?xi32>)
      return {results} : {types} }}"""
    executable = shlo_disc.compile(text)
    for v, n in [(1, 1), (16, 33), (33, 16), (5, 0)]:
        x, y, u, w = (random_array((s,), d, s) for s, d in ((v, "float32"), (v, "int32"), (n, "float32"), (n, "int32")))
        i = inputs((n, 1), "int32", n)
        want = [x.copy(), y.copy()]
        for place, key, value in zip(i[:, 0], u, w, strict=True):
            if 0 <= place < v and want[0][place] < key:
                want[0][place], want[1][place] = key, value
        got = executable(x, y, i, u, w)
        got = got if len(used) > 1 else [got]
        assert all((np.asarray(g) == want[k]).all() for g, k in zip(got, used, strict=True))


def test_many_updates_at_once() -> None:
    """Enough work for several threads: over a batch, over a window's first axis, and over unique indices."""

    def function(x: jax.Array, i: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        columns = jnp.arange(y.shape[1]) * 3 % x.shape[1]
        return (
            jax.vmap(lambda a, j, b: a.at[j].add(b))(x, i, y),
            x.at[:, i[0]].add(y),
            x[0].at[columns].set(y[0], unique_indices=True),
            (x * 2).at[:, columns[:2]].max(1.0),
        )

    sizes: list[Sizes] = [
        {"v": 1, "d": 7, "n": 5},
        {"v": 300, "d": 1000, "n": 700},
        {"v": 2, "d": 100_000, "n": 90_000},
    ]
    check(function, [("v, d", "float32"), ("v, n", "int32"), ("v, n", "float32")], sizes, inputs=inputs)
