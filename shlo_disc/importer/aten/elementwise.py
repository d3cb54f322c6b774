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
    return _truncated(t, x) if t.dtype.is_floating_point else x


def _truncated(t: Graph, x: ir.Value) -> ir.Value:
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


def _operands(t: Graph, dtype: torch.dtype, *values: Any) -> list[ir.Value]:
    return [t.operand(value, dtype) for value in values]


def _widened(t: Graph, *values: Any) -> list[ir.Value]:
    """Operands in the dtype of the result, of which halves are widened: PyTorch rounds numbers to halves first."""
    return [t.convert(t.operand(value, t.dtype), working(t.dtype)) for value in values]


def _factors(t: Graph, x: Any, y: Any) -> list[ir.Value]:
    """The operands of a product or quotient, halves widened.

    A second operand of one element is not rounded first, as in `mul_kernel` and `div_true_kernel` of PyTorch's
    processors: `x * 65536.0` of float16 is finite for small x.
    """
    return [*_widened(t, x), *(_operands(t, working(t.dtype), y) if _has_one_element(y) else _widened(t, y))]


def _has_one_element(value: Any) -> bool:
    return not isinstance(value, ir.Value) or all(d.constant == 1 for d in dims_of(value))


def _common(t: Graph) -> torch.dtype:
    """The dtype in which the first two arguments of the op are compared or combined."""
    metas = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in t.node.args[:2]]
    return torch.result_type(*(m if isinstance(m, torch.Tensor) else _plain(m) for m in metas))


def _plain(number: Any) -> Any:
    """A number of the kind that a symbolic one has."""
    kinds = ((torch.SymInt, 1), (torch.SymFloat, 1.0), (torch.SymBool, True))
    return next((stand_in for kind, stand_in in kinds if isinstance(number, kind)), number)


def _scaled(t: Graph, value: Any, alpha: Any) -> ir.Value:
    found = _widened(t, value)[0]
    return found if alpha == 1 else build.multiply(found, *_widened(t, alpha))


@translates("add.Tensor", "add.Scalar")
def plus(t: Graph, x: Any, y: Any, alpha: Any = 1) -> ir.Value:
    """x + alpha * y; logical or for booleans."""
    if t.dtype == torch.bool:
        return build.or_(*_operands(t, t.dtype, x, y))
    return t.convert(build.add(_widened(t, x)[0], _scaled(t, y, alpha)), t.dtype)


@translates("sub.Tensor", "sub.Scalar")
def minus(t: Graph, x: Any, y: Any, alpha: Any = 1) -> ir.Value:
    """x - alpha * y."""
    return t.convert(build.subtract(_widened(t, x)[0], _scaled(t, y, alpha)), t.dtype)


@translates("rsub.Tensor", "rsub.Scalar")
def minus_from(t: Graph, x: Any, y: Any, alpha: Any = 1) -> ir.Value:
    """y - alpha * x."""
    return minus(t, y, x, alpha)


@translates("mul.Tensor", "mul.Scalar")
def times(t: Graph, x: Any, y: Any) -> ir.Value:
    """x * y; logical and for booleans."""
    if t.dtype == torch.bool:
        return build.and_(*_operands(t, t.dtype, x, y))
    return t.convert(build.multiply(*_factors(t, x, y)), t.dtype)


@translates("div.Tensor", "div.Scalar", "true_divide.Tensor", "true_divide.Scalar")
def divided(t: Graph, x: Any, y: Any) -> ir.Value:
    """x / y in floats."""
    return t.convert(build.divide(*_factors(t, x, y)), t.dtype)


@translates("div.Tensor_mode", "div.Scalar_mode")
def divided_in_mode(t: Graph, x: Any, y: Any, rounding_mode: str | None = None) -> ir.Value:
    """x / y, rounded towards zero ("trunc") or down ("floor")."""
    if rounding_mode is None:
        return divided(t, x, y)
    if not t.dtype.is_floating_point:
        a, b = _operands(t, t.dtype, x, y)
        return _integer_quotient(t, a, b, rounding_mode == "floor")
    a, b = _factors(t, x, y)
    if rounding_mode == "trunc":
        return t.convert(_truncated(t, build.divide(a, b)), t.dtype)
    return t.convert(_float_floor(t, a, b), t.dtype)


@translates("floor_divide", "floor_divide.Scalar")
def floor_divided(t: Graph, x: Any, y: Any) -> ir.Value:
    """x / y rounded down."""
    return divided_in_mode(t, x, y, "floor")


def _float_floor(t: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """PyTorch's floor division of floats, by the remainder, as Python's: exact where the quotient is an integer."""
    zero, one = (t.constant(n, t.dtype_of(a), dims_of(a)) for n in (0, 1))
    rest = build.remainder(a, b)
    quotient = build.divide(build.subtract(a, rest), b)
    differs = t.compare(
        "NE", t.convert(t.compare("LT", rest, zero), torch.uint8), t.convert(t.compare("LT", b, zero), torch.uint8)
    )
    is_low = build.and_(t.compare("NE", rest, zero), differs)
    quotient = t.select(is_low, build.subtract(quotient, one), quotient)
    floor = build.floor(quotient)
    above = t.compare("GT", build.subtract(quotient, floor), t.constant(0.5, t.dtype_of(a), dims_of(a)))
    floor = t.select(above, build.add(floor, one), floor)
    plain = build.divide(a, b)
    floor = t.select(t.compare("EQ", quotient, zero), build.multiply(zero, plain), floor)
    return t.select(t.compare("EQ", b, zero), plain, floor)


def _integer_quotient(t: Graph, a: ir.Value, b: ir.Value, is_floor: bool) -> ir.Value:
    quotient = build.divide(a, b)
    if not is_floor or t.dtype == torch.uint8:
        return quotient
    zero, one = (t.constant(n, t.dtype, dims_of(a)) for n in (0, 1))
    rest = build.subtract(a, build.multiply(quotient, b))
    differs = t.compare("LT", build.xor(rest, b), zero)
    is_low = build.and_(t.compare("NE", rest, zero), differs)
    return t.select(is_low, build.subtract(quotient, one), quotient)


@translates("fmod.Tensor", "fmod.Scalar")
def fmod(t: Graph, x: Any, y: Any) -> ir.Value:
    """The remainder with the sign of x."""
    return t.convert(build.remainder(*_widened(t, x, y)), t.dtype)


@translates("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(t: Graph, x: Any, y: Any) -> ir.Value:
    """The remainder with the sign of y, as in Python."""
    kind = working(t.dtype)
    a, b = _widened(t, x, y)
    rest = build.remainder(a, b)
    if kind == torch.uint8:
        return rest
    zero = t.constant(0, kind, t.dims)
    signs = [t.convert(t.compare("LT", v, zero), torch.uint8) for v in (rest, b)]
    is_other = build.and_(t.compare("NE", rest, zero), t.compare("NE", *signs))
    return t.convert(t.select(is_other, build.add(rest, b), rest), t.dtype)


@translates("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(t: Graph, x: Any, y: Any) -> ir.Value:
    """x to the power of y; negative powers of integers are 0, except those of 1 and -1."""
    if t.dtype.is_floating_point:
        return t.convert(_float_power(t, x, y), t.dtype)
    if t.dtype == torch.bool:
        raise t.refuse("a power of booleans has no lowering", "convert to integers first")
    a, b = _operands(t, t.dtype, x, y)
    zero, one = (t.constant(n, t.dtype, t.dims) for n in (0, 1))
    below = t.compare("LT", b, zero)
    found = build.power(a, t.select(below, zero, b))
    odd = t.compare("NE", build.and_(b, one), zero)
    of_minus_one = t.select(odd, a, one)
    negative_powers = t.select(t.compare("EQ", a, one), one, zero)
    if t.dtype != torch.uint8:
        is_minus_one = t.compare("EQ", a, t.constant(-1, t.dtype, t.dims))
        negative_powers = t.select(is_minus_one, of_minus_one, negative_powers)
    return t.select(below, negative_powers, found)


def _float_power(t: Graph, x: Any, y: Any) -> ir.Value:
    """PyTorch's special cases, `pow_tensor_scalar_optimized_kernel`: bfloat16 is rounded after each of their steps."""
    base, exponent = _widened(t, x, y)
    if not isinstance(y, int | float):
        return build.power(base, exponent)
    if y == 2:
        return build.multiply(base, base)
    if y == 0.5:
        return build.sqrt(base)
    if t.dtype == torch.bfloat16 and y in (3, -2):
        square = t.convert(t.convert(build.multiply(base, base), t.dtype), torch.float32)
        return build.multiply(square, base) if y == 3 else build.divide(t.constant(1, torch.float32, t.dims), square)
    return build.power(base, exponent)


@translates("atan2")
def atan2(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The angle of the point (y, x)."""
    return t.convert(build.atan2(*_widened(t, x, y)), t.dtype)


@translates("hypot")
def hypot(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The length of a vector, without intermediate overflow."""
    kind = working(t.dtype)
    a, b = (build.abs(v) for v in _widened(t, x, y))
    long, short = build.maximum(a, b), build.minimum(a, b)
    ratio = build.divide(short, long)
    one = t.constant(1, kind, t.dims)
    root = build.sqrt(build.add(one, build.multiply(ratio, ratio)))
    is_plain = t.compare("NE", short, long)
    equal = build.multiply(long, t.constant(math.sqrt(2), kind, t.dims))
    found = t.select(is_plain, build.multiply(long, root), equal)
    infinite = t.constant(math.inf, kind, t.dims)
    is_infinite = build.or_(*(t.compare("EQ", v, infinite) for v in (a, b)))
    return t.convert(t.select(is_infinite, infinite, found), t.dtype)


@translates("prims.fma.default")
def multiply_and_add(t: Graph, x: Any, y: Any, z: Any) -> ir.Value:
    """x * y + z, as `addcmul` in the steps of optimizers has it."""
    kind = working(t.dtype)
    return t.convert(build.add(build.multiply(*_operands(t, kind, x, y)), _operands(t, kind, z, z)[0]), t.dtype)


@translates("copysign.Tensor", "copysign.Scalar")
def copysign(t: Graph, x: Any, y: Any) -> ir.Value:
    """|x| with the sign of y."""
    value, other = _operands(t, t.dtype, x, y)
    size = build.abs(value)
    return t.select(signbit(t, other), build.negate(size), size)


def _extremum(name: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: Any, y: Any) -> ir.Value:
        return t.pointwise(name, *_operands(t, t.dtype, x, y))

    return translate


add("maximum", _extremum("maximum"))
add("minimum", _extremum("minimum"))


def _number_of(name: str) -> Callable[..., ir.Value]:
    """The extremum of two numbers, or the one of them that is a number."""
    choose = _extremum(name)

    def translate(t: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
        found, (a, b) = choose(t, x, y), _operands(t, t.dtype, x, y)
        if not t.dtype.is_floating_point:
            return found
        return t.select(t.compare("NE", a, a), b, t.select(t.compare("NE", b, b), a, found))

    return translate


add("fmax", _number_of("maximum"))
add("fmin", _number_of("minimum"))


def _comparison(direction: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: Any, y: Any) -> ir.Value:
        return t.compare(direction, *_operands(t, _common(t), x, y))

    return translate


def _bitwise(name: str) -> Callable[..., ir.Value]:
    def translate(t: Graph, x: Any, y: Any) -> ir.Value:
        return t.pointwise(name, *_operands(t, t.dtype, x, y))

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
    return t.select(mask, *_operands(t, t.dtype, x, y))


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
