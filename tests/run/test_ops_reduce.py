# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions: every body, any axes, several values at once, rows on both sides of the row buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from shlo_disc.lowering_cpu.emitters.row_kernel import MAX_ROW_BYTES
from tests.run.op_check import (
    FLOATS,
    INTEGERS,
    Sizes,
    assert_same,
    check,
    compile_function,
    dtype_of,
    mlir_dtype,
    random_array,
    run_xla,
)

AXES = ((2,), (1,), (0,), (1, 2), (0, 1), (0, 2), (0, 1, 2))
SHAPES: list[Sizes] = [
    {"a": a, "b": b, "c": c}
    for a, b, c in [(1, 1, 1), (2, 3, 15), (3, 2, 16), (1, 5, 17), (5, 1, 31), (2, 2, 32), (3, 7, 33), (17, 16, 5),
                    (2, 97, 3), (4, 3, 300)]
]  # fmt: skip

REDUCERS: dict[str, Callable[..., Any]] = {
    "add": lambda x, axes: lax.reduce(x, x.dtype.type(0), lax.add, axes),
    "maximum": lambda x, axes: jnp.max(x, axes),
    "minimum": lambda x, axes: jnp.min(x, axes),
    "multiply": lambda x, axes: lax.reduce(x, x.dtype.type(1), lax.mul, axes),
}


def all_axes(reducer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: tuple(reducer(x, axes) for axes in AXES)


@pytest.mark.parametrize("dtype", ("int32", "uint8", "int64", "int16", "uint64"))
@pytest.mark.parametrize("name", REDUCERS)
def test_integers(name: str, dtype: str) -> None:
    check(all_axes(REDUCERS[name]), [("a, b, c", dtype)], SHAPES if dtype == "int32" else SHAPES[::4])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ("maximum", "minimum"))
def test_extremes_of_floats(name: str, dtype: str) -> None:
    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        x = random_array(shape, dtype, seed)
        x.reshape(-1)[:: 41 + seed] = [np.nan, np.inf, -np.inf][seed % 3]
        return x

    check(all_axes(REDUCERS[name]), [("a, b, c", dtype)], SHAPES if dtype == "float32" else SHAPES[::3], inputs=inputs)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ("add", "multiply"))
def test_sums_and_products_of_floats(name: str, dtype: str) -> None:
    """The order of additions is ours to choose, so the bound grows with the sum of magnitudes.

    XLA rounds half floats after every addition; ours are added in f32. The bound is XLA's error, of some units for
    some hundreds of elements.
    """

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        x = np.random.default_rng(seed).standard_normal(shape)
        return (x if name == "add" else np.exp2(x / 32)).astype(dtype_of(dtype))

    half = dtype in ("float16", "bfloat16")
    bound = 40 if half else 32 if name == "add" else 128
    sizes = SHAPES[:7] if half else SHAPES
    check(all_axes(REDUCERS[name]), [("a, b, c", dtype)], sizes, inputs=inputs, ulps=bound, scaled=True)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_half_sums_are_rounded_once(dtype: str) -> None:
    def sums(x: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(x.sum(axis, dtype=x.dtype) for axis in (1, 0))

    executable = shlo_disc.compile(sums, args=(("m, n", dtype),))
    for shape in [(3, 17), (33, 300), (2, 1025), (1000, 3)]:
        x = np.abs(random_array(shape, dtype))
        exact = [x.astype(np.float64).sum(axis) for axis in (1, 0)]
        for got, want in zip(executable(x), exact, strict=True):
            eps = float(jnp.finfo(dtype).eps)
            assert np.all(np.abs(got.astype(np.float64) - want) <= 0.51 * eps * want + 1e-30)


@pytest.mark.slow
def test_booleans() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        found = [op(v, axes) for axes in AXES for op in (jnp.all, jnp.any) for v in (x, y > 0)]
        return (*found, *(lax.reduce(x, False, lax.bitwise_xor, axes) for axes in AXES))

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).random(shape) < [0.5, 0.02, 0.98][seed % 3]

    def mixed(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        return inputs(shape, dtype, seed) if dtype == "bool" else random_array(shape, dtype, seed)

    check(function, [("a, b, c", "bool"), ("a, b, c", "float32")], SHAPES, inputs=mixed)


@pytest.mark.parametrize("dtype", ("int32", "uint32", "int8"))
def test_bitwise(dtype: str) -> None:
    zero, ones = dtype_of(dtype).type(0), ~dtype_of(dtype).type(0)

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        bodies = [(lax.bitwise_and, ones), (lax.bitwise_or, zero), (lax.bitwise_xor, zero)]
        return tuple(lax.reduce(x, start, body, axes) for axes in AXES for body, start in bodies)

    check(function, [("a, b, c", dtype)], SHAPES[::2])


@pytest.mark.parametrize("dtype", ("float32", "int32"))
def test_other_initial_values(dtype: str) -> None:
    """An initial value that is no neutral element, and one that is an argument: it counts once.

    XLA counts it as often as it splits the reduction, so its own reduction starts from the neutral element here.
    """
    bodies = {lax.add: jnp.sum, lax.max: jnp.max, lax.min: jnp.min}
    seven = dtype_of(dtype).type(7)

    def function(x: jax.Array, start: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(lax.reduce(x, s, body, axes) for axes in AXES for body in bodies for s in (seven, start))

    def reference(x: jax.Array, start: jax.Array) -> tuple[jax.Array, ...]:
        found = [(body, f(x, axes).astype(x.dtype)) for axes in AXES for body, f in bodies.items()]
        return tuple(body(s, value) for body, value in found for s in (seven, start))

    executable = compile_function(function, [("a, b, c", dtype), ("", dtype)])
    for seed, sizes in enumerate(SHAPES[1::3]):
        arguments = random_array(tuple(sizes.values()), dtype, seed), random_array((), dtype, seed)
        scale = run_xla(reference, [abs(a) for a in arguments]) if dtype == "float32" else None
        assert_same(executable(*arguments), run_xla(reference, arguments), 16, scale)


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16", "int32", "uint8", "bool"))
def test_argmax_and_argmin(dtype: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(f(x, axis, np.int32) for axis in (0, 1, 2) for f in (lax.argmax, lax.argmin))

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        x = np.random.default_rng(seed).integers(0, 9, shape).astype(dtype_of(dtype))
        if dtype.endswith("float32") or dtype == "float64":
            x.reshape(-1)[:: 53 + seed] = np.nan
        return x

    check(function, [("a, b, c", dtype)], SHAPES if dtype == "float32" else SHAPES[::3], inputs=inputs)


@pytest.mark.slow
def test_bodies_of_several_ops() -> None:
    """A body that is no single op runs over the elements in order; XLA's order is not defined, so the body commutes."""

    def squares(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.maximum(x, y) * jnp.int32(1) + jnp.int32(0)

    def pair(a: tuple[jax.Array, ...], b: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return a[0] + b[0], jnp.minimum(a[1], b[1])

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        least = jnp.int32(-(2**31))
        found = [lax.reduce(x, least, squares, axes) for axes in AXES]
        for axes in AXES:
            found += lax.reduce((x, x * 3), (jnp.int32(0), jnp.int32(2**31 - 1)), pair, axes)
        return tuple(found)

    check(function, [("a, b, c", "int32")], SHAPES)


@pytest.mark.slow
def test_reduce_of_computed_values_and_several_at_once() -> None:
    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        z = x * y[:, None, :] + 1
        scaled = z / (9 + z.max(-1, keepdims=True))
        return z.sum(-1), z.max(-1), (z * z).min((1, 2)), z.sum(0), z.T.max(0), z.sum(), scaled

    specs = [("a, b, c", "float32"), ("a, c", "float32")]
    check(function, specs, SHAPES, ulps=64, scaled=True)


def softmax_of_tanh(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.tanh(x), -1)


def softmax_of_norm(x: jax.Array) -> jax.Array:
    y = jnp.tanh(x)
    return jax.nn.softmax(jnp.sin((y - y.mean(-1, keepdims=True)) * 3), -1)


def softmax_and_others(x: jax.Array) -> tuple[jax.Array, ...]:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    half = x.astype(jnp.bfloat16)
    return e / e.sum(-1, keepdims=True), e.sum(-1), jax.nn.softmax(half, -1)


@pytest.mark.parametrize("more", (-1, 0, 1, 40_005))
@pytest.mark.parametrize(
    ("function", "kept"),
    [(lambda x: jax.nn.softmax(x, -1), 1), (softmax_of_tanh, 2), (softmax_of_norm, 3), (softmax_and_others, 1)],
)
def test_rows_around_the_row_buffer(function: Callable[..., Any], kept: int, more: int) -> None:
    """Values of a row that a later walk reads are kept where the row fits, and else computed again."""
    limit = MAX_ROW_BYTES // (4 * kept)
    executable = shlo_disc.compile(function, args=(("m, n", "float32"),))
    assert any(f"n <= {limit}" in kernel.missing for kernel in executable.explain(m=1, n=8).kernels)
    fixed = shlo_disc.compile(function, args=((f"2, {limit + more}", "float32"),))
    x = random_array((2, limit + more), "float32")
    got, want = (jax.tree.leaves(f(x)) for f in (executable, jax.jit(function)))
    assert_same(got[:2], want[:2], 64)
    assert_same(got[2:], want[2:], 4)
    assert_same(jax.tree.leaves(fixed(x)), got, 64)


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS))
def test_empty_inputs(dtype: str) -> None:
    """Text, because jax.export's symbols start at 1."""
    kind = mlir_dtype(dtype)
    text = f"""func.func @main(%x: tensor<?x?x{kind}>) -> (tensor<?x{kind}>, tensor<?x{kind}>, tensor<{kind}>) {{
      %c = stablehlo.constant dense<3> : tensor<i32>
      %i = stablehlo.convert %c : (tensor<i32>) -> tensor<{kind}>
      %r = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [1]
        : (tensor<?x?x{kind}>, tensor<{kind}>) -> tensor<?x{kind}>
      %s = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [0]
        : (tensor<?x?x{kind}>, tensor<{kind}>) -> tensor<?x{kind}>
      %t = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<?x?x{kind}>, tensor<{kind}>) -> tensor<{kind}>
      return %r, %s, %t : tensor<?x{kind}>, tensor<?x{kind}>, tensor<{kind}> }}"""
    executable = shlo_disc.compile(text)
    three = dtype_of(dtype).type(3)
    for shape in [(0, 5), (5, 0), (0, 0), (2, 3)]:
        x = np.zeros(shape, dtype_of(dtype))
        want = np.full(shape[0], three), np.full(shape[1], three), np.array(three)
        assert_same(executable(x), want)
