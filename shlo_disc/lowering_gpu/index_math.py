# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic of indices with numbers that are known."""

from __future__ import annotations

from shlo_disc.lowering.positions import index_constant
from shlo_disc.shape_dialect.mlir import arith, ir


def plus(value: ir.Value, number: int) -> ir.Value:
    """value + number."""
    return arith.addi(value, index_constant(number))


def times(value: ir.Value, number: int) -> ir.Value:
    """value * number."""
    return arith.muli(value, index_constant(number))


def divided(value: ir.Value, by: int) -> tuple[ir.Value, ir.Value]:
    """Remainder and quotient."""
    return arith.remui(value, index_constant(by)), arith.divui(value, index_constant(by))


def parts(size: ir.Value, of: int) -> ir.Value:
    """The number of parts of a given size, the last one perhaps not whole."""
    return arith.divui(plus(size, of - 1), index_constant(of))


def below(value: ir.Value, end: ir.Value) -> ir.Value:
    """value < end, without signs."""
    return arith.cmpi(arith.CmpIPredicate.ult, value, end)


def is_multiple_of(value: ir.Value, number: int) -> ir.Value:
    """Tells whether a value is a multiple of a power of two."""
    rest = arith.andi(value, index_constant(number - 1))
    return arith.cmpi(arith.CmpIPredicate.eq, rest, index_constant(0))
