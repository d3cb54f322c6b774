# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute each element of the result from the elements at the same place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir

from .graph import Graph, working
from .table import add, translates

Formula = Callable[[Graph, ir.Value], ir.Value]


# ---- one operand ----------------------------------------------------------------------------------------------------


def _unary(name: str) -> Callable[..., ir.Value]:
    """An op on floats that StableHLO or CHLO has; integers become floats, and halves are computed as they are."""

    def translate(t: Graph, x: ir.Value) -> ir.Value:
        return t.convert(t.pointwise(name, t.convert(x, _computed(t, name))), t.dtype)

    return translate


def _computed(t: Graph, name: str) -> torch.dtype:
    """Functions of CHLO are computed in single precision for halves, as PyTorch does."""
    return working(t.dtype) if name.startswith("chlo.") else t.dtype


for _aten, _op in {
    "exp": "exponential", "expm1": "exponential_minus_one", "log": "log", "log1p": "log_plus_one", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "sin": "sine", "cos": "cosine", "tan": "tan", "tanh": "tanh", "sigmoid": "logistic",
    "erf": "chlo.erf", "erfc": "chlo.erfc", "erfinv": "chlo.erf_inv", "acos": "chlo.acos", "acosh": "chlo.acosh",
    "asin": "chlo.asin", "asinh": "chlo.asinh", "atan": "chlo.atan", "atanh": "chlo.atanh", "cosh": "chlo.cosh",
    "sinh": "chlo.sinh", "lgamma": "chlo.lgamma",
}.items():  # fmt: skip
    add(_aten, _unary(_op))


def _rounding(name: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value) -> ir.Value:
        return t.pointwise(name, x) if t.dtype.is_floating_point else x

    return translate


for _aten, _op in {"ceil": "ceil", "floor": "floor", "round": "round_nearest_even"}.items():
    add(_aten, _rounding(_op))


@translates("trunc")
def trunc(t: Graph, x: ir.Value) -> ir.Value:
    """The integer part, rounded towards zero."""
    return truncated(t, x) if t.dtype.is_floating_point else x


def truncated(t: Graph, x: ir.Value) -> ir.Value:
    """Floats rounded towards zero."""
    below = t.compare("LT", x, t.constant(0, t.dtype_of(x), dims_of(x)))
    return t.select(below, build.ceil(x), build.floor(x))


def _scaled_log(base: float) -> Formula:
    def translate(t: Graph, x: ir.Value) -> ir.Value:
        kind = working(t.dtype)
        logarithm = build.log(t.convert(x, kind))
        return t.convert(build.divide(logarithm, t.constant(math.log(base), kind, t.dims)), t.dtype)

    return translate


add("log2", _scaled_log(2.0))
add("log10", _scaled_log(10.0))


@translates("exp2")
def exp2(t: Graph, x: ir.Value) -> ir.Value:
    """2 to the power of x."""
    kind = working(t.dtype)
    return t.convert(build.power(t.constant(2, kind, t.dims), t.convert(x, kind)), t.dtype)


@translates("abs")
def absolute(t: Graph, x: ir.Value) -> ir.Value:
    """|x|; unsigned integers and booleans are theirs."""
    return x if t.dtype in (torch.bool, torch.uint8) else build.abs(x)


@translates("neg")
def negative(t: Graph, x: ir.Value) -> ir.Value:
    """-x; integers wrap around."""
    return build.negate(x)


@translates("sign", "sgn")
def sign(t: Graph, x: ir.Value) -> ir.Value:
    """-1, 0 or 1; 0 for NaN, as in PyTorch."""
    if t.dtype in (torch.bool, torch.uint8):
        return t.convert(t.convert(x, torch.bool), t.dtype)
    found = build.sign(x)
    if not t.dtype.is_floating_point:
        return found
    return t.select(t.compare("EQ", x, x), found, t.constant(0, t.dtype, t.dims))


@translates("signbit")
def signbit(t: Graph, x: ir.Value) -> ir.Value:
    """Tells whether the sign bit is set, also for -0.0 and NaNs."""
    kind = t.dtype_of(x)
    if not kind.is_floating_point:
        return t.compare("LT", x, t.constant(0, kind, t.dims))
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[kind.itemsize]
    raw = t.op("bitcast_convert", [x], t.dims, t.element(bits))
    return t.compare("LT", raw, t.constant(0, bits, t.dims))


@translates("reciprocal")
def reciprocal(t: Graph, x: ir.Value) -> ir.Value:
    """1 / x."""
    return build.divide(t.constant(1, t.dtype, t.dims), t.convert(x, t.dtype))


@translates("relu")
def relu(t: Graph, x: ir.Value) -> ir.Value:
    """max(x, 0)."""
    return build.maximum(x, t.constant(0, t.dtype, dims_of(x)))


@translates("isnan")
def isnan(t: Graph, x: ir.Value) -> ir.Value:
    """Tells whether an element is NaN."""
    return t.compare("NE", x, x)


@translates("isinf")
def isinf(t: Graph, x: ir.Value) -> ir.Value:
    """Tells whether an element is one of the infinities."""
    kind = t.dtype_of(x)
    if not kind.is_floating_point:
        return t.constant(False, torch.bool, t.dims)
    return t.compare("EQ", build.abs(x), t.constant(math.inf, kind, t.dims))


@translates("logical_not")
def logical_not(t: Graph, x: ir.Value) -> ir.Value:
    """Tells whether an element is zero."""
    return build.not_(t.convert(x, torch.bool))


@translates("bitwise_not")
def bitwise_not(t: Graph, x: ir.Value) -> ir.Value:
    """All bits inverted."""
    return build.not_(x)


@translates(
    "clone", "alias", "detach", "lift_fresh", "lift_fresh_copy", "detach_copy", "alias_copy", "contiguous",
    "prims.copy_strided.default",
)  # fmt: skip
def same(t: Graph, x: ir.Value, *_: Any) -> ir.Value:
    """The tensor itself: values have no addresses."""
    return x


@translates("_to_copy", "to.dtype", "prims.convert_element_type.default")
def converted(t: Graph, x: ir.Value, *_: Any) -> ir.Value:
    """The elements in the dtype of the result."""
    return t.convert(x, t.dtype)


# ---- two operands ---------------------------------------------------------------------------------------------------


def operands(t: Graph, dtype: torch.dtype, *values: Any) -> list[ir.Value]:
    """The operands of an op in a dtype, broadcast to the sizes of its result."""
    return [t.operand(value, dtype) for value in values]


def _common(t: Graph) -> torch.dtype:
    """The dtype in which the first two arguments of the op are compared or combined."""
    metas = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in t.node.args[:2]]
    return torch.result_type(*(m if isinstance(m, torch.Tensor) else _plain(m) for m in metas))


def _plain(number: Any) -> Any:
    """A number of the kind that a symbolic one has."""
    kinds = ((torch.SymInt, 1), (torch.SymFloat, 1.0), (torch.SymBool, True))
    return next((stand_in for kind, stand_in in kinds if isinstance(number, kind)), number)


@translates("copysign.Tensor", "copysign.Scalar")
def copysign(t: Graph, x: Any, y: Any) -> ir.Value:
    """|x| with the sign of y."""
    value, other = operands(t, t.dtype, x, y)
    size = build.abs(value)
    return t.select(signbit(t, other), build.negate(size), size)


def _extremum(name: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: Any, y: Any) -> ir.Value:
        return t.pointwise(name, *operands(t, t.dtype, x, y))

    return translate


add("maximum", _extremum("maximum"))
add("minimum", _extremum("minimum"))


def _number_of(name: str) -> Callable[..., ir.Value]:
    """The extremum of two numbers, or the one of them that is a number."""
    choose = _extremum(name)

    def translate(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
        found, (a, b) = choose(t, x, y), operands(t, t.dtype, x, y)
        if not t.dtype.is_floating_point:
            return found
        return t.select(t.compare("NE", a, a), b, t.select(t.compare("NE", b, b), a, found))

    return translate


add("fmax", _number_of("maximum"))
add("fmin", _number_of("minimum"))


def _comparison(direction: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: Any, y: Any) -> ir.Value:
        return t.compare(direction, *operands(t, _common(t), x, y))

    return translate


def _bitwise(name: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: Any, y: Any) -> ir.Value:
        return t.pointwise(name, *operands(t, t.dtype, x, y))

    return translate


def _logical(name: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
        return t.pointwise(name, *(t.stretch(t.convert(v, torch.bool), t.dims) for v in (x, y)))

    return translate


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    for _kind in ("Tensor", "Scalar"):
        add(f"{_name}.{_kind}", _comparison(_name.upper()))
for _name in ("and", "or", "xor"):
    add(f"logical_{_name}", _logical(_name))
    for _kind in ("Tensor", "Scalar", "Scalar_Tensor"):
        add(f"bitwise_{_name}.{_kind}", _bitwise(_name))


# ---- three operands -------------------------------------------------------------------------------------------------


@translates("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(t: Graph, condition: ir.Value, x: Any, y: Any) -> ir.Value:
    """x where the condition holds, else y."""
    mask = t.stretch(t.convert(condition, torch.bool), t.dims)
    return t.select(mask, *operands(t, t.dtype, x, y))


@translates("clamp", "clamp.Tensor")
def clamp(t: Graph, x: ir.Value, low: Any = None, high: Any = None) -> ir.Value:
    """x clamped between two bounds; the upper bound if they cross."""
    found = t.operand(x, t.dtype)
    if low is not None:
        found = build.maximum(found, t.operand(low, t.dtype))
    return found if high is None else build.minimum(found, t.operand(high, t.dtype))


@translates("hardtanh")
def hardtanh(t: Graph, x: ir.Value, low: Any, high: Any) -> ir.Value:
    """x clamped between two numbers."""
    return clamp(t, x, low, high)


@translates("leaky_relu")
def leaky_relu(t: Graph, x: ir.Value, slope: Any) -> ir.Value:
    """x, or a fraction of it if it is negative."""
    kind = working(t.dtype)
    value = t.operand(x, kind)
    above = t.compare("GT", value, t.constant(0, kind, t.dims))
    return t.convert(t.select(above, value, build.multiply(value, t.operand(slope, kind))), t.dtype)


@translates("elu")
def elu(t: Graph, x: ir.Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> ir.Value:
    """scale * (x above 0, else alpha * (exp(input_scale * x) - 1))."""
    kind = working(t.dtype)
    value = t.operand(x, kind)
    below = build.exponential_minus_one(build.multiply(value, t.operand(input_scale, kind)))
    below = build.multiply(below, t.operand(alpha, kind))
    above = t.compare("GT", value, t.constant(0, kind, t.dims))
    return t.convert(build.multiply(t.select(above, value, below), t.operand(scale, kind)), t.dtype)


@translates("gelu")
def gelu(t: Graph, x: ir.Value, approximate: str = "none") -> ir.Value:
    """x times the normal distribution function of x, or its approximation with tanh."""
    kind = working(t.dtype)
    value = t.convert(x, kind)

    def number(n: float) -> ir.Value:
        return t.constant(n, kind, dims_of(x))

    if approximate == "tanh":
        cube = build.multiply(build.multiply(value, value), value)
        inner = build.add(value, build.multiply(cube, number(0.044715)))
        part = build.tanh(build.multiply(inner, number(math.sqrt(2 / math.pi))))
    else:
        part = build.erf(build.multiply(value, number(math.sqrt(0.5))))
    half = build.multiply(value, number(0.5))
    return t.convert(build.multiply(half, build.add(part, number(1))), t.dtype)
