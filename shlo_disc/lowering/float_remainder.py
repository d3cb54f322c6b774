# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C's fmod without a library call: long division on the significands, bit by bit, in one loop over the exponent gap.

Source: the shift-and-subtract method used by soft-float libraries (FreeBSD msun `e_fmodf.c` describes it); exact for
every pair of finite floats.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import arith, ir, math, scf, vector


def _number(like_value: ir.Value, number: float | int) -> ir.Value:
    from shlo_disc.lowering.element_types import constant_like

    return constant_like(like_value, number)


def float_remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a - trunc(a/b)*b` with the sign of `a`; NaN for infinite a, zero b or NaN; a for infinite b.

    Every step subtracts `|b| * 2^k` where it fits, the largest k first. Scaling by a power of two and the subtraction
    of a number within a factor of two are exact, so the result is.
    """
    x, y = math.absf(a), math.absf(b)
    is_double = _is_double(a)
    highest = 2200 if is_double else 300
    result = _divide_down(x, y, highest, is_double)
    infinity, zero = _number(x, float("inf")), _number(x, 0.0)
    ok = arith.andi(arith.cmpf(arith.CmpFPredicate.OLT, x, infinity), arith.cmpf(arith.CmpFPredicate.OGT, y, zero))
    finite_divisor = arith.cmpf(arith.CmpFPredicate.OLT, y, infinity)
    result = arith.select(finite_divisor, result, x)
    result = math.copysign(result, a)
    return arith.select(ok, result, _number(x, float("nan")))


def _is_double(value: ir.Value) -> bool:
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    return isinstance(element, ir.F64Type)


def _divide_down(x: ir.Value, y: ir.Value, highest: int, is_double: bool) -> ir.Value:
    """Subtract y * 2^k for k = highest .. 0; scales that overflow are infinite and never fit."""
    index = ir.IndexType.get()
    zero, one, count = (arith.constant(index, n) for n in (0, 1, highest + 1))
    loop = scf.ForOp(zero, count, one, [x])
    with ir.InsertionPoint(loop.body):
        power = arith.subi(arith.constant(index, highest), loop.induction_variable)
        scaled = _scale(y, power, is_double)
        rest = loop.inner_iter_args[0]
        fits = arith.cmpf(arith.CmpFPredicate.OLE, scaled, rest)
        scf.yield_([arith.select(fits, arith.subf(rest, scaled), rest)])
    return loop.results[0]


def _scale(y: ir.Value, power: ir.Value, is_double: bool) -> ir.Value:
    """y * 2^power, in three exact or overflowing factors."""
    integer = ir.IntegerType.get_signless(64 if is_double else 32)
    element = ir.F64Type.get() if is_double else ir.F32Type.get()
    bias, mantissa, step = (1023, 52, 1000) if is_double else (127, 23, 120)
    rest = arith.index_cast(integer, power)
    for _ in range(3):
        part = arith.minsi(rest, arith.constant(integer, step))
        rest = arith.subi(rest, part)
        biased = arith.shli(arith.addi(part, arith.constant(integer, bias)), arith.constant(integer, mantissa))
        factor = arith.bitcast(element, biased)
        if isinstance(y.type, ir.VectorType):
            factor = vector.broadcast(y.type, factor)
        y = arith.mulf(y, factor)
    return y
