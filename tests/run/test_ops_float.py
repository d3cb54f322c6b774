# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops on floats: every op at every dtype, all of a group in one compile.

XLA's own functions are not exact either, so each row has its own bound in units of the last place. f16 and bf16 are
computed in f32 and rounded, by XLA too: one unit covers a difference that falls on a rounding boundary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import FLOATS, WIDTHS, assert_same, compile_function, dtype_of, mlir_dtype, run_xla

EXACT: dict[str, Callable[..., Any]] = {
    "abs": lambda x, y: lax.abs(x),
    "add": lax.add,
    "ceil": lambda x, y: lax.ceil(x),
    "clamp": lambda x, y: lax.clamp(lax.min(x, y), y * 0.5, lax.max(x, y)),
    "compare_eq": lax.eq,
    "compare_ge": lax.ge,
    "compare_gt": lax.gt,
    "compare_le": lax.le,
    "compare_lt": lax.lt,
    "compare_ne": lax.ne,
    "divide": lax.div,
    "floor": lambda x, y: lax.floor(x),
    "is_finite": lambda x, y: lax.is_finite(x),
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "negate": lambda x, y: lax.neg(x),
    "remainder": lax.rem,
    "round_nearest_afz": lambda x, y: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": lambda x, y: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "select": lambda x, y: lax.select(x < y, x, y),
    "sign": lambda x, y: lax.sign(x),
    "subtract": lax.sub,
}

BOUNDS: dict[str, tuple[float, Callable[..., Any]]] = {
    "atan2": (4, lax.atan2),
    "cbrt": (4, lambda x, y: lax.cbrt(x)),
    "cosine": (4, lambda x, y: lax.cos(x)),
    "exponential": (4, lambda x, y: lax.exp(x)),
    "exponential_minus_one": (4, lambda x, y: lax.expm1(x)),
    "log": (4, lambda x, y: lax.log(x)),
    # Near -0.4 XLA's f64 log1p is off by up to 90 units; ours is within one.
    "log_plus_one": (128, lambda x, y: lax.log1p(x)),
    "logistic": (4, lambda x, y: lax.logistic(x)),
    "power": (8, lax.pow),
    "rsqrt": (2, lambda x, y: lax.rsqrt(x)),
    "sine": (4, lambda x, y: lax.sin(x)),
    "sqrt": (1, lambda x, y: lax.sqrt(x)),
    "tan": (4, lambda x, y: lax.tan(x)),
    "tanh": (4, lambda x, y: lax.tanh(x)),
}

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, 3.0, 1e-3, -1e-3, 100.0, -100.0, np.inf, -np.inf,
           np.nan, 3.0e4, -3.0e4, 0.49999997, 8388609.0, 0.75)  # fmt: skip


def samples(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays: every pair of special values, then numbers of all magnitudes that the dtype reaches with ease."""
    kind = dtype_of(dtype)
    special = np.array(SPECIAL)
    rng = np.random.default_rng(7)
    random = rng.standard_normal((2, 900)) * np.exp2(rng.integers(-12, 12, (2, 900)))
    near = rng.uniform(-4, 4, (2, 600))
    x = np.concatenate([np.repeat(special, len(special)), random[0], near[0]])
    y = np.concatenate([np.tile(special, len(special)), random[1], near[1]])
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(kind), y.astype(kind)


def windows(x: np.ndarray, y: np.ndarray, size: int, number: int) -> tuple[np.ndarray, ...]:
    """`size` neighbouring elements of both arrays, starting somewhere else for each `number`, and their places."""
    where = (np.arange(size) + 523 * number) % x.size
    return x[where], y[where], where


def check_group(rows: dict[str, tuple[float, Callable[..., Any]]], dtype: str) -> None:
    """One compile at rank 1, one at rank 2 and one static, each at every width, against one run of XLA."""

    def everything(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
        return {name: function(x, y) for name, (_, function) in rows.items()}

    x, y = samples(dtype)
    want = run_xla(everything, (x, y))
    vector, matrix = (compile_function(everything, [(s, dtype)] * 2) for s in ("n", "m, n"))
    static = compile_function(everything, [("n", dtype)] * 2, {"n": x.size})
    for number, width in enumerate((*WIDTHS, x.size)):
        a, b, where = windows(x, y, width, number)
        compare(rows, vector(a, b), want, where, (width,))
        if width == x.size:
            compare(rows, static(a, b), want, where, (width,))
    for number, shape in enumerate([(3, 1), (1, 16), (2, 33), (17, 15), (5, 300)]):
        a, b, where = windows(x, y, shape[0] * shape[1], number)
        compare(rows, matrix(a.reshape(shape), b.reshape(shape)), want, where, shape)


def compare(rows: dict[str, Any], got: Any, want: Any, where: np.ndarray, shape: tuple[int, ...]) -> None:
    for name, (bound, _) in rows.items():
        try:
            assert_same(got[name], want[name][where].reshape(shape), bound)
        except AssertionError as error:
            raise AssertionError(f"{name} at {shape}: {error}") from None


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact(dtype: str) -> None:
    check_group({name: (0.0, function) for name, function in EXACT.items()}, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bounds(dtype: str) -> None:
    check_group(BOUNDS, dtype)


# ---- bits -----------------------------------------------------------------------------------------------------------

PRECISIONS = {"float32": [(8, 7), (5, 10), (8, 23), (4, 3), (2, 1), (8, 0), (11, 52), (3, 23)],
              "float64": [(8, 23), (11, 52), (5, 10), (11, 0), (2, 60)],
              "float16": [(5, 10), (4, 3), (8, 7)], "bfloat16": [(8, 7), (4, 3), (5, 2)]}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_reduce_precision(dtype: str) -> None:
    def reduced(bits: tuple[int, int]) -> Callable[..., Any]:
        return lambda x, y: lax.reduce_precision(x, *bits)

    check_group({str(bits): (0.0, reduced(bits)) for bits in PRECISIONS[dtype]}, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bitcast_to_integers_and_back(dtype: str) -> None:
    width = dtype_of(dtype).itemsize * 8
    rows = {
        kind + str(width): (0.0, lambda x, y, kind=kind: lax.bitcast_convert_type(x, f"{kind}{width}"))
        for kind in ("int", "uint")
    }
    flip = dtype_of(f"uint{width}").type(1 << (width - 1))
    rows["flipped"] = (0.0, lambda x, y: lax.bitcast_convert_type(rows[f"uint{width}"][1](x, y) ^ flip, x.dtype))
    rows["sum"] = (0.0, lambda x, y: lax.bitcast_convert_type(rows[f"int{width}"][1](x + y, y), x.dtype))
    check_group(rows, dtype)


TOTAL_ORDER = """
func.func @main(%x: tensor<{n}x{t}>, %y: tensor<{n}x{t}>) -> ({results}) {{
{body}
  return {values} : {results}
}}"""


@pytest.mark.parametrize("dtype", FLOATS)
def test_compare_in_total_order(dtype: str) -> None:
    """Against the integers that IEEE 754 orders by: sign and magnitude as two's complement."""
    directions = ("EQ", "NE", "LT", "LE", "GT", "GE")
    kind = mlir_dtype(dtype)
    lines = [
        f"  %{d} = stablehlo.compare {d}, %x, %y, TOTALORDER : (tensor<?x{kind}>, tensor<?x{kind}>) -> tensor<?xi1>"
        for d in directions
    ]
    values = ", ".join(f"%{d}" for d in directions)
    results = ", ".join("tensor<?xi1>" for _ in directions)
    text = TOTAL_ORDER.format(n="?", t=kind, body="\n".join(lines), values=values, results=results)
    executable = shlo_disc.compile(text)
    x, y = samples(dtype)
    for size in (0, 1, 15, 16, 17, 33, x.size):
        a, b = ordered_bits(x[:size]), ordered_bits(y[:size])
        want = [a == b, a != b, a < b, a <= b, a > b, a >= b]
        assert_same(executable(x[:size], y[:size]), want)


def ordered_bits(x: np.ndarray) -> np.ndarray:
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
