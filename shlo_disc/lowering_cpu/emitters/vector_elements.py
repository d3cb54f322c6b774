# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of CPU kernels: lanes that stand in a pattern are read by vector loads and shuffles.

A reversal, a step of 2, a repetition and an interleaving read each line of memory once so, where a gather would read
element by element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from shlo_disc.lowering.element_types import Element
from shlo_disc.lowering.elements import Elements, Positions, splat_constant
from shlo_disc.lowering.multiples import Multiples, constant_of_index
from shlo_disc.lowering.positions import Position, PositionMath, at_distances, index_constant
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector

WIDEST = 4
"""Vectors that are read for one, at most; lanes further apart are gathered."""


class VectorMath(PositionMath):
    """For a vector of `width` lanes. multiples: the indices that are known to be multiples of the width."""

    def __init__(self, width: int, multiples: Multiples):
        super().__init__(width)
        self.multiples = multiples

    def divmod(self, p: Position, divisor: ir.Value) -> tuple[Position, Position]:
        """Quotient and remainder of a nonnegative position, in a pattern where lanes start at a multiple of both.

        Lanes that lie within a multiple of the divisor have one quotient.
        """
        number = constant_of_index(divisor)
        if number is None or number < 1 or p.lanes is not None or p.is_uniform or not self.multiples.holds(p.base):
            return self.divide_lanes(p, divisor)
        distances = p.distances(self.width)
        if self.width % number == 0:
            whole = arith.divui(p.base, divisor)
            rests = [distance % number for distance in distances]
            return at_distances(whole, [d // number for d in distances]), at_distances(index_constant(0), rests)
        if number % self.width == 0 and min(distances) >= 0 and max(distances) < self.width:
            quotient, rest = arith.divui(p.base, divisor), arith.remui(p.base, divisor)
            return Position(quotient), at_distances(rest, distances)
        return self.divide_lanes(p, divisor)


@dataclass
class VectorElements(Elements):
    """The emitter of `width` lanes of a CPU kernel."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.multiples = Multiples(self.width, self.facts)
        self.math = VectorMath(self.width, self.multiples)

    def where(
        self, condition: ir.Value, yes: Callable[[], ir.Value], no: Callable[[], ir.Value], type_: ir.Type
    ) -> ir.Value:
        """As `Elements.where`. Lanes that agree on the condition branch: a masked read of no lane at all takes hundreds
        of cycles on x86 where its address is not mapped."""
        if self.width == 1 or isinstance(condition.type, ir.VectorType):
            return super().where(condition, yes, no, type_)
        choice = scf.IfOp(condition, [type_], has_else=True)
        for block, side in ((choice.then_block, yes), (choice.else_block, no)):
            with ir.InsertionPoint(block), self.scope():
                found = side()
                scf.yield_([self.splat(found) if isinstance(type_, ir.VectorType) else found])
        return choice.results[0]

    def linear_offset(self, positions: Positions, dims: Dims) -> Position:
        """The row-major element offset of a position, whose lanes that are valid stand at 0 of an axis of size 1."""
        zero = Position(index_constant(0))
        places = tuple(zero if d.constant == 1 else p for p, d in zip(positions, dims, strict=True))
        return super().linear_offset(places, dims)

    def gather(self, buffer: ir.Value, offset: Position, element: Element, rank: int) -> ir.Value:
        """Read each lane at its own row-major offset: by a few vectors, where all lanes are valid and lie in them."""
        if offset.is_linear:
            return self.load_vector(buffer, [*[index_constant(0)] * (rank - 1), offset.base], element)
        mask = self.lane_mask()
        if offset.lanes is None and (mask is None or is_known_mask(mask)):
            distances = offset.distances(self.width)
            if max(distances) - min(distances) < WIDEST * self.width:
                return self._spread(buffer, offset.base, distances, element, rank, mask)
        return super().gather(buffer, offset, element, rank)

    def _spread(
        self,
        buffer: ir.Value,
        base: ir.Value,
        distances: tuple[int, ...],
        element: Element,
        rank: int,
        mask: ir.Value | None,
    ) -> ir.Value:
        """The lanes at some distances from a base, picked from vectors of all that lies between them.

        Nothing outside of the valid lanes is read: the last vector ends where the last lane stands, and those of a mask
        have one of their own.
        """
        first, last = min(distances), max(distances)
        length = min(self.width, last - first + 1)
        starts = [*range(first, last + 2 - length, length)]
        if starts[-1] + length <= last:
            starts.append(last + 1 - length)
        origin = [index_constant(0)] * (rank - 1)
        type_ = ir.VectorType.get([length], element.memory())
        result = splat_constant(ir.VectorType.get([self.width], element.memory()))
        for start in starts:
            indices = [*origin, arith.addi(base, index_constant(start))]
            lanes = [d - start if 0 <= d - start < length else None for d in distances]
            if mask is None:
                read = vector.load(type_, buffer, indices)
            else:
                there = self._mask_of(mask, lanes, length)
                read = vector.maskedload(type_, buffer, indices, there, splat_constant(type_))
            picked = [n if lane is None else self.width + lane for n, lane in enumerate(lanes)]
            result = vector.shuffle(result, read, picked)
        return result

    def _mask_of(self, mask: ir.Value, lanes: list[int | None], length: int) -> ir.Value:
        """The elements of a vector that a valid lane of `mask` reads."""
        readers: list[list[int]] = [[n for n, lane in enumerate(lanes) if lane == place] for place in range(length)]
        none = splat_constant(ir.VectorType.get([self.width], ir.IntegerType.get_signless(1)))
        turns = [[own[n] if n < len(own) else self.width for own in readers] for n in range(max(map(len, readers)))]
        return functools.reduce(arith.ori, [vector.shuffle(mask, none, turn) for turn in turns])


_FOLDED = frozenset(
    {"arith.addi", "arith.andi", "arith.cmpi", "arith.constant", "arith.muli", "arith.ori", "arith.subi", "arith.xori",
     "vector.broadcast"}
)  # fmt: skip
"""Ops that LLVM computes where all operands are constants."""


def is_known_mask(value: ir.Value) -> bool:
    """Tells whether a mask is made of constants alone."""
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block) or owner.operation.name not in _FOLDED:
            return False
        pending += owner.operation.operands
    return True


__all__ = ["VectorElements"]
