# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sliding windows: pooling, any body, strides, both dilations, padding of either sign, windows of symbolic size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import shlo_disc
from tests.run.op_check import (
    Sizes,
    assert_same,
    check,
    check_text,
    dtype_of,
    mlir_dtype,
    random_array,
    small_integers,
    tensor_text,
)

IMAGES: list[Sizes] = [
    {"b": b, "h": h, "w": w, "c": c}
    for b, h, w, c in [(1, 1, 1, 1), (2, 2, 3, 15), (1, 7, 5, 16), (3, 5, 16, 17), (1, 13, 17, 33), (2, 8, 31, 4)]
]

SMALLEST = dict.fromkeys(("float32", "bfloat16", "float64", "float16"), -np.inf) | {"int32": -(2**31), "uint8": 0}


def max_pool(x: jax.Array, window: tuple[int, ...], strides: tuple[int, ...], padding: Any) -> jax.Array:
    least = np.array(SMALLEST[x.dtype.name], x.dtype)
    return lax.reduce_window(x, least, lax.max, window, strides, padding)


@pytest.mark.parametrize("dtype", SMALLEST)
def test_max_pooling(dtype: str) -> None:
    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return (
            max_pool(x, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
            max_pool(x, (1, 2, 3, 1), (1, 1, 2, 1), ((0, 0), (1, 0), (1, 1), (0, 0))),
            max_pool(x, (1, 1, 1, 2), (1, 1, 1, 1), "SAME"),
        )

    check(function, [("b, h, w, c", dtype)], IMAGES if dtype == "float32" else IMAGES[::2])


def test_pooling_along_the_last_axes() -> None:
    """Images stored channels first: vectors run along the stride, so they gather."""

    def function(x: jax.Array) -> tuple[jax.Array, ...]:
        return max_pool(x, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"), max_pool(x, (1, 1, 2, 2), (1, 1, 1, 1), "SAME")

    check(function, [("b, c, h, w", "float32")], IMAGES)


def test_average_pooling_with_what_surrounds_it() -> None:
    def function(x: jax.Array, y: jax.Array) -> jax.Array:
        z = jnp.maximum(x * y, 0)
        total = lax.reduce_window(z, np.float32(0), lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        count = lax.reduce_window(jnp.ones_like(z), np.float32(0), lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        return total / count + 1

    check(function, [("b, h, w, c", "float32"), ("c", "float32")], IMAGES, ulps=16)


def window_program(dtype: str, shape: str, result: str, attributes: str, body: str, count: int = 1) -> str:
    """`@main(inputs..., inits...)` around one reduce_window of `count` values."""
    kind = mlir_dtype(dtype)
    tensor, scalar = f"tensor<{shape}x{kind}>", f"tensor<{kind}>"
    values = [f"%x{i}" for i in range(count)] + [f"%i{i}" for i in range(count)]
    types = [tensor] * count + [scalar] * count
    pairs = [f"{v}: {t}" for v, t in zip(values, types, strict=True)]
    arguments = ", ".join(f"%p{i}: {scalar}" for i in range(2 * count))
    results = ", ".join([f"tensor<{result}x{kind}>"] * count)
    returned = ", ".join(f"%r#{i}" for i in range(count)) if count > 1 else "%r"
    name = f"%r:{count}" if count > 1 else "%r"
    return f"""func.func @main({", ".join(pairs)}) -> ({results}) {{
      {name} = "stablehlo.reduce_window"({", ".join(values)}) <{{{attributes}}}> ({{
        ^bb0({arguments}):
          {body.replace("TYPE", scalar)}
      }}) : ({", ".join(types)}) -> ({results})
      return {returned} : {results} }}"""


ADD = "%s = stablehlo.add %p0, %p1 : TYPE\n stablehlo.return %s : TYPE"
WINDOWS: dict[str, tuple[str, str, str]] = {
    "strides and dilations": (
        "?x?x3", "?x?x3",
        "window_dimensions = array<i64: 2, 3, 1>, window_strides = array<i64: 2, 1, 1>, "
        "base_dilations = array<i64: 1, 2, 1>, window_dilations = array<i64: 2, 1, 1>, "
        "padding = dense<[[1, 2], [0, 1], [0, 0]]> : tensor<3x2xi64>",
    ),
    "every dilation": (
        "?x?", "?x?",
        "window_dimensions = array<i64: 2, 3>, base_dilations = array<i64: 3, 2>, "
        "window_dilations = array<i64: 2, 3>, padding = dense<[[2, 1], [4, 5]]> : tensor<2x2xi64>",
    ),
    "negative padding": (
        "?x?", "?x?",
        "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>, "
        "padding = dense<[[-1, 1], [1, -2]]> : tensor<2x2xi64>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ("float32", "int32", "uint8"))
@pytest.mark.parametrize("name", WINDOWS)
def test_strides_dilations_and_padding(name: str, dtype: str) -> None:
    """The initial value counts once a window, as in XLA: holes and padding hold nothing."""
    shape, result, attributes = WINDOWS[name]
    text = window_program(dtype, shape, result, attributes, ADD)
    rank = shape.count("?")
    calls = []
    for sizes in [(5, 6), (7, 17), (16, 33), (6, 5)]:
        dims = (*sizes[:rank], 3) if shape.endswith("3") else sizes
        calls.append([small_integers(dims, dtype), small_integers((), dtype, 7) + dtype_of(dtype).type(1)])
    check_text(text, calls)


def test_a_body_of_several_values() -> None:
    body = """%c = stablehlo.compare GE, %p0, %p2 : (TYPE, TYPE) -> tensor<i1>
      %v = stablehlo.select %c, %p0, %p2 : tensor<i1>, TYPE
      %t = stablehlo.add %p1, %p3 : TYPE
      stablehlo.return %v, %t : TYPE, TYPE"""
    attributes = (
        "window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 1>, "
        "padding = dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>"
    )
    text = window_program("int32", "?x?", "?x?", attributes, body, count=2)
    zero = np.array(0, np.int32)
    calls = [
        [random_array((m, n), "int32", 1), small_integers((m, n), "int32", 2), np.array(-(2**31), np.int32), zero]
        for m, n in [(1, 1), (4, 15), (5, 17), (9, 33)]
    ]
    check_text(text, calls)


def test_a_body_with_its_own_constants() -> None:
    def function(x: jax.Array) -> jax.Array:
        return lax.reduce_window(
            x, np.int32(-(2**31)), lambda a, b: jnp.maximum(a, b) * jnp.int32(1) + jnp.int32(0), (3,), (1,), "SAME"
        )

    check(function, [("n", "int32")], [{"n": n} for n in (1, 2, 16, 17, 40)])


@pytest.mark.parametrize("padding", ("VALID", "SAME"))
def test_windows_of_symbolic_size(padding: str) -> None:
    def function(x: jax.Array) -> jax.Array:
        return lax.reduce_window(x, np.int32(0), lax.add, (1, x.shape[0], 2), (1, 1, 1), padding)

    sizes = [{"m": m, "n": n} for m, n in [(1, 2), (2, 5), (3, 17), (5, 33)]]
    check(function, [("m, n + 6, n", "int32")], sizes)


def test_a_window_of_one_element_with_padding() -> None:
    """The last windows hold nothing but padding."""
    attributes = "window_dimensions = array<i64: 1, 1>, padding = dense<[[0, 2], [1, 0]]> : tensor<2x2xi64>"
    text = window_program("int32", "?x?", "?x?", attributes, ADD)
    check_text(text, [[small_integers((m, n), "int32"), np.array(5, np.int32)] for m, n in [(1, 1), (3, 16), (2, 33)]])


CUMULATIVE = {"sum": lax.cumsum, "prod": lax.cumprod, "max": lax.cummax, "min": lax.cummin, "lse": lax.cumlogsumexp}
LINES: list[Sizes] = [
    {"m": m, "n": n, "k": k} for m, n, k in [(1, 2, 1), (3, 5, 17), (2, 33, 1), (4, 16, 33), (17, 1, 65)]
]


def cumulative(name: str) -> Callable[..., Any]:
    """Along every axis, from both ends."""
    function = CUMULATIVE[name]
    return lambda x: tuple(function(x, axis=axis, reverse=r) for axis in range(x.ndim) for r in (False, True))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, dtype) for name in ("sum", "prod", "max", "min") for dtype in ("float32", "int32")), ("sum", "uint8")],
)
def test_cumulative_ops(name: str, dtype: str) -> None:
    """Sums and products of small integers are exact in any order."""

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        x = random_array(shape, dtype, seed)
        if dtype != "float32" or name in ("max", "min"):
            return x
        return np.sign(x) * (1 if name == "prod" else 2)

    executable = check(cumulative(name), [("m, n, k", dtype)], LINES, inputs=inputs)
    kinds = [line for line in executable.as_text("fuse").splitlines() if "disc.fusion" in line]
    assert kinds and all('"scan"' in line for line in kinds)


def test_cumulative_log_sum_exp() -> None:
    check(cumulative("lse"), [("m, n, k", "float32")], LINES[1:4], ulps=64, floor=1.0)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_cumulative_sums_of_half_floats_are_rounded_once(dtype: str) -> None:
    executable = shlo_disc.compile(lambda x: jnp.cumsum(x, 0), args=(("n, k", dtype),))
    x = np.abs(random_array((90, 17), dtype))
    exact = np.cumsum(x.astype(np.float64), 0)
    assert np.all(np.abs(executable(x).astype(np.float64) - exact) <= 0.51 * float(jnp.finfo(dtype).eps) * exact)


def test_cumulative_ops_among_others() -> None:
    """The operand of a cumulative op is computed in its kernel; NaN spreads from where it stands."""

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        z = jnp.cumsum(jnp.round(x * 4) + y, axis=1)
        return z * 2 + y, jnp.cumsum(jnp.cumsum(jnp.ones_like(x), 0), 1)

    def inputs(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
        x = np.round(random_array(shape, dtype, seed))
        x.reshape(-1)[:: 41 + seed] = [np.nan, np.inf, 3][seed % 3]
        return x

    check(function, [("m, n, k", "float32"), ("k", "float32")], LINES, inputs=inputs, ulps=1)


def pool_gradient(window: tuple[int, ...], strides: tuple[int, ...], padding: Any) -> Callable[..., Any]:
    def total(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(max_pool(x, window, strides, padding) * y[0])

    return jax.grad(total)


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16"))
def test_gradient_of_max_pooling(dtype: str) -> None:
    """Windows overlap and elements are small integers: ties go to the first, sums are exact."""
    strided = pool_gradient((1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    same = pool_gradient((1, 3, 2, 1), (1, 1, 2, 1), "SAME")
    along_last = pool_gradient((1, 1, 2, 3), (1, 1, 1, 2), "SAME")

    def function(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
        return strided(x, y), same(x, y), along_last(x, y)

    specs = [("b, h, w, c", dtype), ("1", dtype)]
    check(function, specs, IMAGES[1::2] if dtype == "float32" else IMAGES[2:3], inputs=small_integers)


SELECT_AND_SCATTER = """func.func @main(%x: TENSOR, %s: TENSOR, %i: SCALAR) -> TENSOR {
  %r = "stablehlo.select_and_scatter"(%x, %s, %i) <{ATTRIBUTES}> ({
    ^bb0(%a: SCALAR, %b: SCALAR):
      %c = stablehlo.compare LT, %a, %b : (SCALAR, SCALAR) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }, {
    ^bb0(%a: SCALAR, %b: SCALAR):
      %m = stablehlo.BODY %a, %b : SCALAR
      stablehlo.return %m : SCALAR
  }) : (TENSOR, TENSOR, SCALAR) -> TENSOR
  return %r : TENSOR }"""


@pytest.mark.parametrize(
    ("dtype", "body"), [("float32", "add"), ("int32", "maximum"), ("uint8", "multiply"), ("int64", "add")]
)
def test_select_and_scatter(dtype: str, body: str) -> None:
    """Padding is never selected, and the initial value is where nothing is."""
    attributes = (
        "window_dimensions = array<i64: 2, 1, 3>, window_strides = array<i64: 2, 1, 2>, "
        "padding = dense<[[1, 0], [0, 0], [1, 1]]> : tensor<3x2xi64>"
    )
    kind = mlir_dtype(dtype)
    for suffix in ("", "x5"):
        text = SELECT_AND_SCATTER.replace("TENSOR", f"tensor<?x?x?{suffix}x{kind}>").replace(
            "SCALAR", f"tensor<{kind}>"
        )
        used = attributes.replace(">,", ", 1>,").replace("]]", "], [0, 0]]").replace("3x2x", "4x2x")
        text = text.replace("BODY", body).replace("ATTRIBUTES", used if suffix else attributes)
        calls = []
        for m, n, k in [(1, 1, 1), (3, 2, 5), (4, 17, 16)]:
            tail = (5,) if suffix else ()
            windows = ((m + 1) // 2, n, (k - 1) // 2 + 1, *tail)
            source = small_integers(windows, dtype, 3)
            calls.append([random_array((m, n, k, *tail), dtype), source, np.array(2, dtype_of(dtype))])
        check_text(text, calls)


def test_results_without_elements() -> None:
    """A window larger than its operand fits nowhere; an operand without elements has only padding."""
    attributes = "window_dimensions = array<i64: 3, 2>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>"
    executable = shlo_disc.compile(window_program("float32", "?x?", "?x?", attributes, ADD))
    one = np.array(1, np.float32)
    assert executable(np.ones((2, 5), np.float32), one).shape == (0, 6)
    assert executable(np.ones((0, 5), np.float32), one).shape == (0, 6)
    assert_same(executable(np.ones((4, 0), np.float32), one), np.full((2, 1), 1, np.float32))


def test_a_body_that_cannot_be_compiled_is_refused() -> None:
    text = f"""func.func @main(%x: {tensor_text((4,), "float32")}, %y: tensor<f32>) -> tensor<4xf32> {{
      %r = "stablehlo.reduce_window"(%x, %y) <{{window_dimensions = array<i64: 1>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %y, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }}) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }}"""
    with pytest.raises(shlo_disc.UnsupportedError, match="values from outside"):
        shlo_disc.compile(text)
