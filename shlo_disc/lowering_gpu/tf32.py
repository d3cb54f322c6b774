# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of f32 as operands of TF32 instructions, which read 11 bits of each, in one pass or in three.

Three passes (3xTF32) follow NVIDIA's CUTLASS (`OpMultiplyAddFastF32`) and XLA's `TF32_TF32_F32_X3`: each side is the
sum of two numbers of TF32, a = hi + lo, and a b = lo hi + hi lo + hi hi, without lo lo, which is 2^-22 of a b. The two
small terms have sums of their own, which are added at the end. Small sums that are not finite are left out, as in XLA:
there the large sum has the value, and an infinite hi times a lo of 0 would make it NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.lowering.element_types import constant_like
from shlo_disc.lowering_gpu import nvgpu
from shlo_disc.shape_dialect.mlir import arith, ir, vector

_PASSES = {"tf32": ((0, 0),), "tf32x3": ((0, 0), (1, 0), (0, 1))}
"""By precision: the parts of both sides whose products are added up, 0 for hi and 1 for lo."""

_DROPPED = 13
"""Bits of an f32 that are not in TF32."""

_INFINITY, _QUIET = 0x7F800000, 0x00400000
_LARGEST = 0x7F7FF000
"""The least bits that would be rounded to infinity."""


def round_to_tf32(value: ir.Value) -> ir.Value:
    """The nearest number of TF32, ties away from 0 as `cvt.rna.tf32.f32` has them.

    Finite values stay finite: those beyond the largest one are cut. A NaN stays one.
    """
    bits = arith.bitcast(ir.IntegerType.get_signless(32), value)
    magnitude = arith.andi(bits, constant_like(bits, 0x7FFFFFFF))
    rounds = arith.cmpi(arith.CmpIPredicate.ult, magnitude, constant_like(bits, _LARGEST))
    upwards = arith.addi(bits, constant_like(bits, 1 << (_DROPPED - 1)))
    cut = arith.andi(arith.select(rounds, upwards, bits), constant_like(bits, -(1 << _DROPPED)))
    is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, constant_like(bits, _INFINITY))
    return arith.bitcast(value.type, arith.select(is_nan, arith.ori(cut, constant_like(bits, _QUIET)), cut))


def _is_finite(value: ir.Value) -> ir.Value:
    bits = arith.bitcast(ir.IntegerType.get_signless(32), value)
    exponent = arith.andi(bits, constant_like(bits, _INFINITY))
    return arith.cmpi(arith.CmpIPredicate.ne, exponent, constant_like(bits, _INFINITY))


def _finite_or_zero(value: ir.Value) -> ir.Value:
    return arith.select(_is_finite(value), value, constant_like(value, 0))


def kinds_of(precision: str) -> int:
    """Sums of each result: that of large terms, and that of small ones."""
    return min(2, len(_PASSES[precision]))


def in_parts(value: ir.Value, precision: str) -> list[ir.Value]:
    """A number rounded, or in its two parts."""
    high = round_to_tf32(value)
    if precision == "tf32":
        return [high]
    return [high, round_to_tf32(_finite_or_zero(arith.subf(value, high)))]


def multiply_add(
    lhs: Sequence[ir.Value], rhs: Sequence[ir.Value], sums: list[ir.Value], tile: int, precision: str
) -> None:
    """Add the products of the parts of two fragments to those of a tile, in place. Large sums of all tiles come first,
    then the small ones."""
    tiles = len(sums) // kinds_of(precision)
    for a, b in _PASSES[precision]:
        number = tile + tiles * min(1, a + b)
        sums[number] = nvgpu.multiply_add_tf32(lhs[a], rhs[b], sums[number])


def joined(sums: Sequence[ir.Value], precision: str) -> list[ir.Value]:
    """The numbers of all tiles, of large and small sums as `multiply_add` has them."""
    numbers = [vector.extract(v, [], [i, j]) for v in sums for i in range(2) for j in range(2)]
    if kinds_of(precision) == 1:
        return numbers
    large, small = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
    return [arith.addf(_finite_or_zero(less), more) for more, less in zip(large, small, strict=True)]


__all__ = ["in_parts", "joined", "kinds_of", "multiply_add", "round_to_tf32"]
