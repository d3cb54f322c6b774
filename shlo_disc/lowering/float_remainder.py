# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C's fmod without a library call: long division with digits of 22 bits, or of 51, each by one division.

A quotient below 2^22 that is rounded and cut off differs from its whole part by one at most, and what is left of the
dividend is a multiple of the divisor's last place, below the divisor: a fused multiply-add gives it exactly. Larger
quotients are divided by the divisor times a power of two first. Exact for every pair of finite floats.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.mlir import arith, ir, math, scf, vector


def _number(like_value: ir.Value, number: float | int) -> ir.Value:
    from shlo_disc.lowering.element_types import constant_like

    return constant_like(like_value, number)


def float_remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a - trunc(a/b)*b` with the sign of `a`; NaN for infinite a, zero b or NaN; a for infinite b."""
    x, y = math.absf(a), math.absf(b)
    infinity, zero = _number(x, float("inf")), _number(x, 0.0)
    ok = arith.andi(_below(x, infinity), _below(zero, y))
    divides = arith.andi(ok, _below(y, infinity))
    rest = _divided(arith.select(divides, x, zero), arith.select(divides, y, _number(y, 1.0)))
    result = math.copysign(arith.select(divides, rest, x), a)
    return arith.select(ok, result, _number(x, float("nan")))


def _below(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.cmpf(arith.CmpFPredicate.OLT, a, b)


def _divided(x: ir.Value, y: ir.Value) -> ir.Value:
    """The remainder of finite numbers x >= 0 by y > 0: a digit at a time, while any lane has some to go."""
    loop = scf.WhileOp([x.type], [x])
    before = loop.before.blocks.append(x.type)
    with ir.InsertionPoint(before):
        (rest,) = before.arguments
        scf.condition(_any(arith.cmpf(arith.CmpFPredicate.OGE, rest, y)), [rest])
    after = loop.after.blocks.append(x.type)
    with ir.InsertionPoint(after):
        (rest,) = after.arguments
        scf.yield_([arith.select(_below(rest, y), rest, _without_digit(rest, y))])
    return loop.results[0]


def _any(flags: ir.Value) -> ir.Value:
    if not isinstance(flags.type, ir.VectorType):
        return flags
    return vector.reduction(ir.IntegerType.get_signless(1), vector.CombiningKind.OR, flags)


def _without_digit(rest: ir.Value, y: ir.Value) -> ir.Value:
    """The remainder by y times the largest power of two at which the quotient has few enough bits."""
    form = _FORMS[str(_element(y))]
    few, none = (_integer(y, form, number) for number in (form.digit - 1, 0))
    power = arith.maxsi(arith.subi(arith.subi(_exponent(rest, form), _exponent(y, form)), few), none)
    scaled = _scaled(y, power, form)
    digit = math.floor(arith.divf(rest, scaled))
    left = math.fma(arith.negf(digit), scaled, rest)
    left = arith.select(_below(left, _number(left, 0.0)), arith.addf(left, scaled), left)
    return arith.select(_below(left, scaled), left, arith.subf(left, scaled))


@dataclass(frozen=True)
class _Form:
    """Bits of a type of floats; those of a digit, two less than those of a significand."""

    bits: int
    mantissa: int
    digit: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.mantissa - 2)) - 1


_FORMS = {"f32": _Form(32, 23, 22), "f64": _Form(64, 52, 51)}


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type


def _integer(like_value: ir.Value, form: _Form, number: int) -> ir.Value:
    return _number(arith.bitcast(_integers(like_value.type, form), like_value), number)


def _integers(type_: ir.Type, form: _Form) -> ir.Type:
    integer = ir.IntegerType.get_signless(form.bits)
    return ir.VectorType.get(type_.shape, integer) if isinstance(type_, ir.VectorType) else integer


def _exponent(x: ir.Value, form: _Form) -> ir.Value:
    """The exponent of x > 0, with the bias; at most 0 for numbers that are not normal."""
    shift = form.mantissa + 1
    is_normal = arith.cmpf(arith.CmpFPredicate.OGE, x, _number(x, 2.0 ** (1 - form.bias)))
    normal = arith.select(is_normal, x, arith.mulf(x, _number(x, 2.0**shift)))
    bits = arith.bitcast(_integers(x.type, form), normal)
    exponent = arith.shrui(bits, _number(bits, form.mantissa))
    return arith.subi(exponent, arith.select(is_normal, _number(bits, 0), _number(bits, shift)))


def _scaled(y: ir.Value, power: ir.Value, form: _Form) -> ir.Value:
    """y * 2^power, in three exact factors."""
    for _ in range(3):
        part = arith.minsi(power, _number(power, form.bias))
        power = arith.subi(power, part)
        bits = arith.shli(arith.addi(part, _number(part, form.bias)), _number(part, form.mantissa))
        y = arith.mulf(y, arith.bitcast(y.type, bits))
    return y
