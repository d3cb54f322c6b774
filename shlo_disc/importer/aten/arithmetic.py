# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums, products, quotients and powers of two operands, each element from those at the same place.

Halves are computed in float32. Where PyTorch's kernels for processors round a number beside halves first, so does this.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir

from .elementwise import operands, truncated
from .graph import Graph, working
from .table import translates


def _widened(t: Graph, *values: Any) -> list[ir.Value]:
    """Operands in the dtype of the result, of which halves are widened: PyTorch rounds numbers to halves first."""
    return [t.convert(t.operand(value, t.dtype), working(t.dtype)) for value in values]


def _factors(t: Graph, x: Any, y: Any) -> list[ir.Value]:
    """The operands of a product or quotient, halves widened.

    A second operand of one element is not rounded first, as in `mul_kernel` and `div_true_kernel` of PyTorch's
    processors: `x * 65536.0` of float16 is finite for small x.
    """
    return [*_widened(t, x), *(operands(t, working(t.dtype), y) if _has_one_element(y) else _widened(t, y))]


def _has_one_element(value: Any) -> bool:
    return not isinstance(value, ir.Value) or all(d.constant == 1 for d in dims_of(value))


def _scaled(t: Graph, value: Any, alpha: Any) -> ir.Value:
    found = _widened(t, value)[0]
    return found if alpha == 1 else build.multiply(found, *_widened(t, alpha))


@translates("add.Tensor", "add.Scalar")
def plus(t: Graph, x: Any, y: Any, alpha: Any = 1) -> ir.Value:
    """x + alpha * y; logical or for booleans."""
    if t.dtype == torch.bool:
        return build.or_(*operands(t, t.dtype, x, y))
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
        return build.and_(*operands(t, t.dtype, x, y))
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
        a, b = operands(t, t.dtype, x, y)
        return _integer_quotient(t, a, b, rounding_mode == "floor")
    a, b = _factors(t, x, y)
    if rounding_mode == "trunc":
        return t.convert(truncated(t, build.divide(a, b)), t.dtype)
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
    a, b = operands(t, t.dtype, x, y)
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
    return t.convert(build.add(build.multiply(*operands(t, kind, x, y)), operands(t, kind, z, z)[0]), t.dtype)
