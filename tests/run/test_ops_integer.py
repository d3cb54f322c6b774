# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops on integers and booleans: bit for bit, overflow, division by zero and long shifts included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import shlo_disc
from tests.run.op_check import (
    INTEGERS,
    SIGNED,
    UNSIGNED,
    WIDTHS,
    assert_same,
    check_text,
    compile_function,
    dtype_of,
    mlir_dtype,
    run_xla,
)

Row = Callable[..., Any]

COMMON: dict[str, Row] = {
    "add": lax.add,
    "and": lax.bitwise_and,
    "clamp": lambda x, y: lax.clamp(lax.min(x, y), y * y, lax.max(x, y)),
    "compare_eq": lax.eq,
    "compare_ge": lax.ge,
    "compare_gt": lax.gt,
    "compare_le": lax.le,
    "compare_lt": lax.lt,
    "compare_ne": lax.ne,
    "count_leading_zeros": lambda x, y: lax.clz(x),
    "divide": lax.div,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "not": lambda x, y: lax.bitwise_not(x),
    "or": lax.bitwise_or,
    "popcnt": lambda x, y: lax.population_count(x),
    "remainder": lax.rem,
    "select": lambda x, y: lax.select(x < y, x, y),
    "shift_left": lax.shift_left,
    "shift_left_inside": lambda x, y: lax.shift_left(x, y & y.dtype.type(7)),
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_arithmetic_inside": lambda x, y: lax.shift_right_arithmetic(x, y & y.dtype.type(7)),
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_logical_inside": lambda x, y: lax.shift_right_logical(x, y & y.dtype.type(7)),
    "sign": lambda x, y: lax.sign(x),
    "subtract": lax.sub,
    "xor": lax.bitwise_xor,
}

SIGNED_ONLY: dict[str, Row] = {"abs": lambda x, y: lax.abs(x), "negate": lambda x, y: lax.neg(x)}

BOOLEAN: dict[str, Row] = {
    "and": lax.bitwise_and,
    "compare_eq": lax.eq,
    "compare_ge": lax.ge,
    "compare_gt": lax.gt,
    "compare_le": lax.le,
    "compare_lt": lax.lt,
    "compare_ne": lax.ne,
    "maximum": lax.max,
    "minimum": lax.min,
    "not": lambda x, y: lax.bitwise_not(x),
    "or": lax.bitwise_or,
    "select": lambda x, y: lax.select(x, y, lax.bitwise_not(y)),
    "xor": lax.bitwise_xor,
}


def samples(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of extremes, small numbers and shift amounts around the width; then pairs from the whole range."""
    kind = dtype_of(dtype)
    rng = np.random.default_rng(3)
    if kind == np.bool_:
        return rng.random(700) < 0.5, rng.random(700) < 0.5
    info = np.iinfo(kind)
    special = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, info.bits - 1, info.bits, info.bits + 1]
    if info.min:
        special += [-1, -2, -3, -info.bits]
    edge = np.array(special, kind)
    whole = rng.integers(info.min, info.max, (2, 600), kind, endpoint=True)
    small = rng.integers(max(info.min, -20), 20, (2, 300)).astype(kind)
    x = np.concatenate([np.repeat(edge, edge.size), whole[0], whole[0][:300]])
    y = np.concatenate([np.tile(edge, edge.size), whole[1], small[1]])
    return x, y


def check_group(rows: dict[str, Row], dtype: str) -> None:
    """One compile at rank 1, one at rank 2, one static, each at every width, against one run of XLA."""

    def everything(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
        return {name: function(x, y) for name, function in rows.items()}

    x, y = samples(dtype)
    want = run_xla(everything, (x, y))
    vector, matrix = (compile_function(everything, [(s, dtype)] * 2) for s in ("n", "m, n"))
    static = compile_function(everything, [("n", dtype)] * 2, {"n": x.size})
    compare(static(x, y), want, np.arange(x.size), (x.size,))
    for number, width in enumerate((*WIDTHS, x.size)):
        where = (np.arange(width) + 131 * number) % x.size
        compare(vector(x[where], y[where]), want, where, (width,))
    for number, shape in enumerate([(3, 1), (1, 16), (2, 33), (17, 15), (5, 130)]):
        where = (np.arange(shape[0] * shape[1]) + 131 * number) % x.size
        compare(matrix(x[where].reshape(shape), y[where].reshape(shape)), want, where, shape)


def compare(got: Any, want: Any, where: np.ndarray, shape: tuple[int, ...]) -> None:
    for name in want:
        try:
            assert_same(got[name], want[name][where].reshape(shape))
        except AssertionError as error:
            raise AssertionError(f"{name} at {shape}: {error}") from None


@pytest.mark.parametrize("dtype", SIGNED)
def test_signed(dtype: str) -> None:
    check_group(COMMON | SIGNED_ONLY, dtype)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned(dtype: str) -> None:
    check_group(COMMON, dtype)


def test_boolean() -> None:
    check_group(BOOLEAN, "bool")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitcast_changes_the_sign_only(dtype: str) -> None:
    other = dtype[1:] if dtype.startswith("u") else "u" + dtype
    check_group({"bitcast": lambda x, y: lax.bitcast_convert_type(x, other) // np.dtype(other).type(3)}, dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_scalars(dtype: str) -> None:
    def everything(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
        return {name: function(x, y) for name, function in COMMON.items()}

    executable = compile_function(everything, [("", dtype)] * 2)
    x, y = samples(dtype)
    want = run_xla(everything, (x, y))
    for at in range(0, 256, 5):
        compare(executable(x[at], y[at]), want, np.array([at]), ())


POWER = """func.func @main(%x: tensor<?xT>, %y: tensor<?xT>) -> tensor<?xT> {
  %r = stablehlo.power %x, %y : tensor<?xT>
  return %r : tensor<?xT> }"""


@pytest.mark.parametrize("dtype", INTEGERS)
def test_power(dtype: str) -> None:
    """XLA reads six bits of the exponent, so larger ones are compared with Python's integers."""
    x, y = samples(dtype)
    y = y & np.iinfo(y.dtype).max
    executable = check_text(POWER.replace("T", mlir_dtype(dtype)), [(x[:n], y[:n] & 63) for n in (1, 16, 33, x.size)])
    bits = np.iinfo(dtype).bits
    wrapped = [pow(int(a), int(b), 1 << bits) for a, b in zip(x, y, strict=True)]
    assert_same(executable(x, y), np.array(wrapped, f"uint{bits}").view(dtype))


@pytest.mark.parametrize("dtype", SIGNED)
def test_power_of_a_negative_exponent(dtype: str) -> None:
    """The specification rounds 1 / x**n towards zero: 1 for 1, +1 or -1 for -1, 0 beyond; 0 divides to -1."""
    x = np.array([1, 1, -1, -1, -1, 2, -2, 100, -100, 0] * 4, dtype)
    y = np.array([-1, -2, -1, -2, -3, -1, -2, -1, -1, -1] * 4, dtype)
    want = np.array([1, 1, -1, 1, -1, 0, 0, 0, 0, -1] * 4, dtype)
    assert_same(shlo_disc.compile(POWER.replace("T", mlir_dtype(dtype)))(x, y), want)
