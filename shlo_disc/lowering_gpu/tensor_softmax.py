# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The softmax of rows in pieces, for weights that are rounded to 16 bits, or to TF32: in powers of two.

A weight is 2^(x log2(e) - base), one multiplication and addition and one instruction of the GPU, where `base` is the
largest element of the row times log2(e), rounded, and the power of two that weights are made smaller by. What `base` is
rounded by is the same for all weights of a row, and so for their sum. The error of a weight, relative to the others, is
at most 2^-17: 2^-22 of the instruction, and half a unit in the last place of an exponent below 128. A factor of the
program that is no power of two, and is multiplied with log2(e), adds 2^-24 of x, as much as its own rounding of x.

That base is rounded by little only while the largest element is NEAR zero. Beyond, and where an earlier one was, the
difference to the largest element is taken first. Both ways are for the same bases, so rows may change from one to the
other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.lowering_gpu import device_math
from shlo_disc.lowering_gpu.attention_rows import Room, across, f32, number_or_zero, tree
from shlo_disc.lowering_gpu.block_loops import chosen
from shlo_disc.shape_dialect.mlir import arith, ir, math, scf, vector

Values = list[ir.Value]

LOG2_E = 1.4426950408889634

NEAR = 2.0**19
"""Largest elements up to which `base` is rounded by at most 2^-5, so that weights are at most 1.03 before they are made
smaller."""

HALF_ROOM = -14.0
"""The exponent for weights of f16: they are made larger, 2^14 at most, so that few of them are below its range."""


@dataclass(frozen=True)
class RowPart:
    """A lane's elements of a piece of a row, x = factor * y with a positive factor, and the row's largest x before."""

    y: Sequence[ir.Value]
    factor: float
    before: ir.Value


@dataclass(frozen=True)
class RowWeights:
    """The weights of a piece of a row, the factor of the earlier sums, and the largest element so far."""

    weights: Values
    factor: ir.Value
    peak: ir.Value


class TensorSoftmax:
    """The softmax of the rows of a kernel. lanes: how many neighbouring lanes share a row."""

    def __init__(self, columns: ir.Value, element: ir.Type, lanes: int):
        is_half = isinstance(element, ir.F16Type)
        room = f32(HALF_ROOM) if is_half else arith.sitofp(ir.F32Type.get(), Room.of(columns).exponent)
        self.room, self.lanes = room, lanes

    def of(self, parts: Sequence[RowPart], was_near: ir.Value) -> tuple[list[RowWeights], ir.Value]:
        """The next piece of some rows, and whether their largest elements are near zero, as they were before or not."""
        peaks = [self._peak(part) for part in parts]
        is_near = functools.reduce(arith.andi, map(_is_near, peaks))
        types = [ir.F32Type.get()] * sum(1 + len(part.y) for part in parts)
        choice = scf.IfOp(arith.andi(was_near, is_near), types, has_else=True)
        for block, way in ((choice.then_block, self._near), (choice.else_block, self._far)):
            with ir.InsertionPoint(block):
                scf.yield_([v for part, peak in zip(parts, peaks, strict=True) for v in way(part, peak)])
        results, found = iter(choice.results), list[RowWeights]()
        for part, peak in zip(parts, peaks, strict=True):
            factor = next(results)
            found.append(RowWeights([next(results) for _ in part.y], factor, peak))
        return found, is_near

    def _peak(self, part: RowPart) -> ir.Value:
        """The largest element with this piece."""
        own = _scaled(tree(arith.maximumf, part.y), part.factor)
        return arith.maximumf(part.before, across(own, self.lanes, arith.maximumf))

    def _base(self, peak: ir.Value) -> ir.Value:
        return math.fma(peak, f32(LOG2_E), self.room)

    def _near(self, part: RowPart, peak: ir.Value) -> Values:
        """Factor and weights of a row whose largest elements are near zero, or -inf: then all weights are 0."""
        exp = device_math.fast_exp2
        base = self._base(number_or_zero(peak))
        factor = exp(arith.subf(self._base(part.before), base))
        minus = arith.negf(base)
        return [factor, *(exp(math.fma(y, f32(LOG2_E * part.factor), minus)) for y in part.y)]

    def _far(self, part: RowPart, peak: ir.Value) -> Values:
        """The same for any row. NaN stays NaN."""
        exp = device_math.fast_exp2
        base, rest = number_or_zero(peak), self._rest(peak)

        def power(x: ir.Value, offset: ir.Value) -> ir.Value:
            return exp(math.fma(arith.subf(x, base), f32(LOG2_E), offset))

        minus = arith.negf(rest)
        factor = power(part.before, arith.subf(self._rest(part.before), rest))
        return [factor, *(power(_scaled(y, part.factor), minus) for y in part.y)]

    def _rest(self, peak: ir.Value) -> ir.Value:
        """The number subtracted from exponents beside the largest element itself: near zero, the rest of `_base`."""
        number = number_or_zero(peak)
        rounded = math.fma(arith.negf(number), f32(LOG2_E), self._base(number))
        return arith.select(_is_near(peak), rounded, self.room)


def _scaled(y: ir.Value, factor: float) -> ir.Value:
    return y if factor == 1 else arith.mulf(y, f32(factor))


def _is_near(peak: ir.Value) -> ir.Value:
    """Tells whether a largest element is near zero, or that of no elements."""
    return arith.cmpf(arith.CmpFPredicate.OLT, math.absf(number_or_zero(peak)), f32(NEAR))


def rescaled(
    steps: Sequence[RowWeights], before: Sequence[ir.Value], sums: Values, scaled: Callable[[Values, Values], Values]
) -> Values:
    """The sums of earlier pieces times their factors, which are 1 where the largest elements have not changed. before:
    these of earlier pieces. scaled: sums by factors of rows."""
    is_new = [arith.cmpf(arith.CmpFPredicate.UNE, step.peak, peak) for step, peak in zip(steps, before, strict=True)]
    types = [v.type for v in sums]
    is_any = functools.reduce(arith.ori, is_new)
    return chosen(is_any, types, lambda: scaled(sums, [step.factor for step in steps]), lambda: sums)


def scaled_fragments(sums: Values, factors: Sequence[ir.Value]) -> Values:
    """Fragments of sums times the factors of their two rows."""
    both = [factor for factor in factors for _ in range(2)]
    factor = vector.from_elements(ir.VectorType.get([len(factors), 2], ir.F32Type.get()), both)
    return [arith.mulf(four, factor) for four in sums]


def rounded_weights(weights: Sequence[Values], pairs: range, element: ir.Type) -> ir.Value:
    """Weights of two rows as A (16 x 16): pairs of the first row and of the second, then those of the next fragment."""
    numbers = [w for i in pairs for own in weights for w in own[i : i + 2]]
    wide = vector.from_elements(ir.VectorType.get([4, 2], ir.F32Type.get()), numbers)
    return arith.truncf(ir.VectorType.get([4, 2], element), wide)
