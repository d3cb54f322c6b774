# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise primitives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from tests.fuzz.near.reference.numbers import (
    EPSILON,
    LARGEST,
    Array,
    Number,
    Op,
    any_error,
    is_exact,
    moved,
    rounded,
    rounded_number,
    rule,
    unknown,
)

UNARY: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "exp": (np.exp, 8, 0), "exp2": (np.exp2, 8, 0), "expm1": (np.expm1, 8, 0), "log": (np.log, 8, 4),
    "log1p": (np.log1p, 8, 0), "tanh": (np.tanh, 8, 0), "logistic": (special.expit, 8, 0), "sqrt": (np.sqrt, 4, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 8, 0), "cbrt": (np.cbrt, 8, 0), "erf": (special.erf, 16, 1),
    "erfc": (special.erfc, 32, 4), "sinh": (np.sinh, 16, 0), "cosh": (np.cosh, 16, 0), "atan": (np.arctan, 16, 0),
    "asinh": (np.arcsinh, 16, 1), "tan": (np.tan, 16, 4), "asin": (np.arcsin, 16, 1), "acos": (np.arccos, 16, 1),
    "acosh": (np.arccosh, 16, 4), "atanh": (np.arctanh, 16, 1), "lgamma": (special.gammaln, 64, 64),
    "digamma": (special.digamma, 64, 64), "square": (np.square, 2, 0), "erf_inv": (special.erfinv, 64, 4),
}  # fmt: skip
"""Functions that are monotone between a number less its error and with it: the units in the last place of a correct
answer, and those of 1 besides."""


def _unary(op: Op, x: Number) -> Number:
    function, units, absolute = UNARY[op.params["__name__"]]
    value = np.asarray(function(x.value))
    error = None
    if x.error is not None:
        ends = [np.abs(function(x.value + sign * x.error) - value) for sign in (-1, 1)]
        error = np.where(np.isinf(x.error), np.inf, np.maximum(*ends))  # it may be no number at all
    if absolute:
        error = absolute * EPSILON[op.dtype] + (0 if error is None else error)
    basic = op.params["__name__"] in ("sqrt", "square")
    return rounded(value, error, op.dtype, units, basic=basic)


def _add_unary(name: str) -> None:
    @rule(name)
    def apply(op: Op, x: Number) -> Number:
        if not op.is_float:
            return _integers(lambda a: np.square(a), x)
        return _unary(Op({**op.params, "__name__": name}, op.shapes, op.dtypes), x)


for _name in UNARY:
    _add_unary(_name)


def _add_wave(name: str, function: Callable[[Array], Array]) -> None:
    @rule(name)
    def apply(op: Op, x: Number) -> Number:
        own = 4 * EPSILON[op.dtype]
        return rounded(function(x.value), own if x.error is None else x.error + own, op.dtype, 4)


_add_wave("sin", np.sin)
_add_wave("cos", np.cos)


@rule("copy", "copy_p", "stop_gradient", "optimization_barrier", "pvary")
def _same(op: Op, *x: Number) -> list[Number]:
    return list(x)


@rule("neg")
def _neg(op: Op, x: Number) -> Number:
    return Number(np.negative(x.value), x.error)


@rule("abs")
def _abs(op: Op, x: Number) -> Number:
    return Number(np.abs(x.value), x.error)


@rule("sign")
def _sign(op: Op, x: Number) -> Number:
    value = np.sign(x.value)
    return unknown(value, False if x.error is None else np.abs(x.value) <= x.error)


def _add_step(name: str, function: Callable[[Array], Array]) -> None:
    @rule(name)
    def apply(op: Op, x: Number) -> Number:
        value = function(x.value)
        if x.error is None:
            return Number(value)
        return unknown(value, (function(x.value - x.error) != value) | (function(x.value + x.error) != value))


_add_step("floor", np.floor)
_add_step("ceil", np.ceil)
_add_step("round", np.round)


@rule("is_finite")
def _is_finite(op: Op, x: Number) -> Number:
    return unknown(np.isfinite(x.value), np.isinf(x.errors))


@rule("integer_pow")
def _integer_pow(op: Op, x: Number) -> Number:
    y = op.params["y"]
    if not op.is_float:
        return _integers(lambda a: a**y, x)
    value = x.value**y
    error = None
    if x.error is not None:
        error = np.maximum(*(np.abs((x.value + s * x.error) ** y - value) for s in (-1, 1)))
        error = np.where((y < 0) & (np.abs(x.value) <= x.error), np.inf, error)
    return rounded(value, error, op.dtype, 4 * abs(y))


@rule("convert_element_type")
def _convert(op: Op, x: Number) -> Number:
    source_is_float = np.issubdtype(x.value.dtype, np.floating)
    if op.is_float:
        value = x.value.astype(np.float64)
        return rounded(value, x.error, op.dtype, basic=True)
    if op.dtype == "bool":
        return unknown(x.value != 0, False if x.error is None else np.abs(x.value.astype(float)) <= x.error)
    if not source_is_float:
        return Number(x.value.astype(op.dtype), x.error)
    value = np.trunc(x.value)
    if x.error is None:
        return Number(value.astype(op.dtype))
    changes = (np.trunc(x.value - x.error) != value) | (np.trunc(x.value + x.error) != value)
    return unknown(value.astype(op.dtype), changes)


@rule("reduce_precision")
def _reduce_precision(op: Op, x: Number) -> Number:
    eps = 2.0 ** -op.params["mantissa_bits"]
    return rounded_number(x.value, x.errors + eps * np.abs(x.value), op.dtype)


# ---- two operands ---------------------------------------------------------------------------------------------------


def _integers(function: Callable[..., Array], *operands: Number) -> Number:
    """An op of integers or booleans; where an operand is not known, neither is the result."""
    value = np.asarray(function(*(n.value for n in operands)))
    if not any_error(*operands):
        return Number(value)
    errors = sum(np.broadcast_to(n.errors, value.shape) for n in operands)
    return unknown(value, errors > 0)


@rule("add", "add_any")
def _add(op: Op, x: Number, y: Number) -> Number:
    value = x.value + y.value
    if not op.is_float:
        return Number(value, _sum(x, y, value))
    return rounded(value, _sum(x, y, value), op.dtype, basic=True)


@rule("sub")
def _sub(op: Op, x: Number, y: Number) -> Number:
    value = x.value - y.value
    if not op.is_float:
        return Number(value, _sum(x, y, value))
    return rounded(value, _sum(x, y, value), op.dtype, basic=True)


def _sum(x: Number, y: Number, value: Array) -> Array | None:
    if x.error is None and y.error is None:
        return None
    return np.broadcast_to(x.errors + y.errors, value.shape)


@rule("mul")
def _mul(op: Op, x: Number, y: Number) -> Number:
    if not op.is_float:
        return _integers(np.multiply, x, y) if op.dtype != "bool" else _integers(np.logical_and, x, y)
    value = x.value * y.value
    error = None
    if x.error is not None or y.error is not None:
        # A factor that is exactly zero keeps the product zero however little is known of the other, if that is finite.
        error = _scaled(np.abs(x.value), y.errors) + _scaled(np.abs(y.value), x.errors) + _scaled(x.errors, y.errors)
        error = np.where(_may_overflow(x, op.dtype) | _may_overflow(y, op.dtype), np.inf, error)
        error = np.broadcast_to(error, value.shape)
    return rounded(value, error, op.dtype, 2, basic=True)


def _may_overflow(x: Number, dtype: str) -> Array:
    return np.isinf(x.errors) & (np.abs(x.value) > LARGEST[dtype] / 2)


def _scaled(factor: Array, error: Array) -> Array:
    product = factor * error
    return np.where((factor == 0) | (error == 0), 0.0, product)


@rule("div")
def _div(op: Op, x: Number, y: Number) -> Number:
    if not op.is_float:
        zero = y.value == 0
        safe = np.where(zero, 1, y.value)
        value = (np.sign(x.value) * np.sign(safe) * (np.abs(x.value) // np.abs(safe))).astype(op.dtype)
        return unknown(value, zero | (np.broadcast_to(x.errors + y.errors, value.shape) > 0))
    value = x.value / y.value
    error = None
    if x.error is not None or y.error is not None:
        least = np.abs(y.value) - y.errors
        error = np.where(least > 0, (x.errors + np.abs(value) * y.errors) / least, np.inf)
        error = np.broadcast_to(error, value.shape)
    return rounded(value, error, op.dtype, 4, basic=y.value.ndim == 0 and is_power_of_two(y.value))


def is_power_of_two(value: Array) -> bool:
    """Division by it is exact."""
    return bool(np.abs(np.frexp(value)[0]) == 0.5)


def _add_bound(name: str, function: Callable[[Array, Array], Array]) -> None:
    @rule(name)
    def apply(op: Op, x: Number, y: Number) -> Number:
        value = function(x.value, y.value)
        if not op.is_float:
            return _integers(function, x, y)
        if x.error is None and y.error is None:
            return Number(value)
        return Number(value, np.broadcast_to(np.maximum(x.errors, y.errors), value.shape))


_add_bound("max", np.maximum)
_add_bound("min", np.minimum)


@rule("pow")
def _pow(op: Op, x: Number, y: Number) -> Number:
    if not op.is_float:
        return _integers(np.power, x, y)
    y_value = y.value.astype(np.float64)
    value = np.power(x.value, y_value)
    error = None
    if x.error is not None or y.error is not None:
        ends = [
            np.abs(np.power(x.value + i * x.errors, y_value + j * y.errors) - value) for i in (-1, 1) for j in (-1, 1)
        ]
        error = np.max(ends, axis=0)
    exponent = np.abs(y_value * np.log2(np.maximum(np.abs(x.value), 1e-300)))
    return rounded(value, error, op.dtype, float(16 * (1 + np.max(exponent, initial=0))))


@rule("atan2")
def _atan2(op: Op, x: Number, y: Number) -> Number:
    value = np.arctan2(x.value, y.value)
    radius = np.hypot(x.value, y.value)
    error = (x.errors + y.errors) / np.maximum(radius - x.errors - y.errors, 0)
    seam = (y.value - y.errors <= 0) & (np.abs(x.value) <= x.errors)
    return rounded(value, np.where(seam & (x.errors > 0), np.inf, error), op.dtype, 8)


@rule("rem")
def _rem(op: Op, x: Number, y: Number) -> Number:
    if not op.is_float:
        zero = y.value == 0
        value = np.fmod(x.value, np.where(zero, 1, y.value)).astype(op.dtype)
        return unknown(value, zero | (np.broadcast_to(x.errors + y.errors, value.shape) > 0))
    value = np.fmod(x.value, y.value)
    if not any_error(x, y) and is_exact(value, op.dtype):
        return Number(value)
    return unknown(value, True)


@rule("nextafter")
def _nextafter(op: Op, x: Number, y: Number) -> Number:
    return rounded(x.value, x.error, op.dtype, 2)


def _shift(left: bool, logical: bool) -> Callable[[Array, Array], Array]:
    def apply(x: Array, y: Array) -> Array:
        bits = x.dtype.itemsize * 8
        unsigned = x.view(x.dtype.str.replace("i", "u"))
        source = unsigned if logical or left else x
        amount = np.clip(y, 0, bits - 1).astype(source.dtype)
        moved_bits = source << amount if left else source >> amount
        outside = (y < 0) | (y >= bits)
        fill = np.where(x < 0, -1, 0).astype(x.dtype) if not (left or logical) else np.zeros_like(x)
        return np.where(outside, fill, moved_bits.view(x.dtype))

    return apply


_INTEGER: dict[str, Callable[..., Array]] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "shift_left": _shift(True, False), "shift_right_logical": _shift(False, True),
    "shift_right_arithmetic": _shift(False, False),
    "population_count": lambda a: np.bitwise_count(a).astype(a.dtype),
}  # fmt: skip


def _add_integer(name: str, function: Callable[..., Array]) -> None:
    @rule(name)
    def apply(op: Op, *operands: Number) -> Number:
        return _integers(function, *operands)


for _name, _function in _INTEGER.items():
    _add_integer(_name, _function)

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _add_comparison(name: str, function: Callable[[Array, Array], Array]) -> None:
    @rule(name)
    def apply(op: Op, x: Number, y: Number) -> Number:
        value = function(x.value, y.value)
        if op.same or not any_error(x, y):
            return Number(value)
        distance = np.abs(x.value.astype(np.float64) - y.value.astype(np.float64))
        errors = x.errors + y.errors
        return unknown(value, np.broadcast_to((distance <= errors) & (errors > 0), value.shape))


for _name, _function in _COMPARISONS.items():
    _add_comparison(_name, _function)


# ---- choices --------------------------------------------------------------------------------------------------------


@rule("select_n")
def _select(op: Op, which: Number, *cases: Number) -> Number:
    index = which.value.astype(np.int64)
    shape = op.shapes[0]

    def chosen(*arrays: Array) -> Array:
        stacked = np.stack([np.broadcast_to(a, shape) for a in arrays])
        return np.take_along_axis(stacked, np.broadcast_to(index, shape)[None], axis=0)[0]

    result = moved(chosen, *cases)
    if not any_error(which):
        return result
    values = np.stack([np.broadcast_to(c.value, shape).astype(np.float64) for c in cases])
    errors = np.max([np.broadcast_to(c.errors, shape) for c in cases], axis=0)
    spread = np.where((values == values[:1]).all(0), 0.0, values.max(0) - values.min(0))
    doubtful = np.broadcast_to(which.errors, shape) > 0
    # Where the cases are integers, the result is one of them or another: that any error says.
    return Number(result.value, np.where(doubtful, spread + errors, result.errors))


@rule("clamp")
def _clamp(op: Op, low: Number, x: Number, high: Number) -> Number:
    value = np.minimum(np.maximum(x.value, low.value), high.value)
    if not any_error(low, x, high):
        return Number(value)
    return Number(value, np.broadcast_to(np.maximum(np.maximum(low.errors, x.errors), high.errors), value.shape))
