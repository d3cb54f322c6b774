# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions: where along one axis the lanes of a kernel stand.

A kernel computes `width` elements at once. Along each axis they all stand at the same place (uniform), at places a
constant step apart (linear), at known distances from one place (a pattern), or anywhere (scattered). Keeping these
apart is what turns a read of a tensor into a scalar load, a vector load, loads and a shuffle, or a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.multiples import constant_of_index
from shlo_disc.shape_dialect.mlir import arith, ir, vector


@dataclass(frozen=True)
class Position:
    """`origin + step * lane`, `origin + pattern[lane]`, or `lanes[lane]` where these are set, of MLIR's index type."""

    origin: ir.Value | None
    step: int = 0
    lanes: ir.Value | None = None
    pattern: tuple[int, ...] = ()

    def __eq__(self, other: object) -> bool:
        """MLIR's values can be compared with values only."""
        if not isinstance(other, Position):
            return NotImplemented
        same = self.step == other.step and self.pattern == other.pattern
        if not same or (self.lanes is None) != (other.lanes is None):
            return False
        return self.origin == other.origin if self.lanes is None else self.lanes == other.lanes

    @property
    def base(self) -> ir.Value:
        """The position of lane 0. Raises CompilerError for scattered lanes, which have no common base."""
        if self.origin is None:
            raise CompilerError("lower: a scattered position was used where all lanes have to stand together")
        return self.origin

    @property
    def is_uniform(self) -> bool:
        """All lanes stand at one place."""
        return self.lanes is None and self.step == 0 and not self.pattern

    @property
    def is_linear(self) -> bool:
        """Lanes stand side by side."""
        return self.lanes is None and self.step == 1

    def distances(self, width: int) -> tuple[int, ...]:
        """The distance of each lane from the base, where they are not scattered."""
        return self.pattern or tuple(self.step * lane for lane in range(width))


def at_distances(origin: ir.Value, distances: Sequence[int]) -> Position:
    """Lanes at known distances from a place."""
    first = distances[0]
    step = distances[1] - first if len(distances) > 1 else 0
    if any(distance != first + step * lane for lane, distance in enumerate(distances)):
        return Position(origin, 0, None, tuple(distances))
    if first == 0:
        return Position(origin, step)
    return Position(arith.addi(origin, index_constant(first)), step)


def index_constant(value: int) -> ir.Value:
    """An index constant at the insertion point."""
    index = ir.IndexType.get()
    return arith.constant(index, ir.IntegerAttr.get(index, value))


class PositionMath:
    """Arithmetic on positions for a kernel of `width` lanes, at the insertion point."""

    def __init__(self, width: int):
        self.width = width

    def vector_type(self, element: ir.Type) -> ir.VectorType:
        """A vector of `width` lanes."""
        return ir.VectorType.get([self.width], element)

    def as_lanes(self, p: Position) -> ir.Value:
        """The place of every lane as a vector of indices."""
        if p.lanes is not None:
            return p.lanes
        type_ = self.vector_type(ir.IndexType.get())
        base = vector.broadcast(type_, p.base)
        if p.pattern:
            entries = [ir.IntegerAttr.get(ir.IndexType.get(), distance) for distance in p.pattern]
            return arith.addi(base, arith.constant(type_, ir.DenseElementsAttr.get(entries, type_)))
        if p.step == 0:
            return base
        lane = vector.step(type_)
        if p.step != 1:
            lane = arith.muli(lane, vector.broadcast(type_, index_constant(p.step)))
        return arith.addi(base, lane)

    def _splat(self, value: ir.Value) -> ir.Value:
        return vector.broadcast(self.vector_type(ir.IndexType.get()), value)

    def add(self, p: Position, offset: ir.Value | Position) -> Position:
        """`p + offset`; the offset is a scalar index or a position."""
        other = offset if isinstance(offset, Position) else Position(offset)
        if p.lanes is None and other.lanes is None:
            origin = arith.addi(p.base, other.base)
            if p.pattern or other.pattern:
                pairs = zip(p.distances(self.width), other.distances(self.width), strict=True)
                return at_distances(origin, [a + b for a, b in pairs])
            return Position(origin, p.step + other.step)
        return Position(None, 0, arith.addi(self.as_lanes(p), self.as_lanes(other)))

    def scale(self, p: Position, factor: ir.Value, constant: int | None = None) -> Position:
        """`p * factor`; `constant` is the factor's value when it is known."""
        if constant == 1:
            return p
        if p.is_uniform:
            return Position(arith.muli(p.base, factor))
        if p.lanes is None and constant is not None:
            pattern = tuple(distance * constant for distance in p.pattern)
            return Position(arith.muli(p.base, factor), p.step * constant, None, pattern)
        return Position(None, 0, arith.muli(self.as_lanes(p), self._splat(factor)))

    def negate_from(self, limit: ir.Value, p: Position) -> Position:
        """`limit - p`."""
        if p.lanes is None:
            pattern = tuple(-distance for distance in p.pattern)
            return Position(arith.subi(limit, p.base), -p.step, None, pattern)
        return Position(None, 0, arith.subi(self._splat(limit), p.lanes))

    def divmod(self, p: Position, divisor: ir.Value) -> tuple[Position, Position]:
        """Quotient and remainder of a nonnegative position.

        A size of 0 has no positions, but those of a branch that is not taken are computed, too: it divides as 1.
        """
        return self.divide_lanes(p, divisor)

    def divide_lanes(self, p: Position, divisor: ir.Value) -> tuple[Position, Position]:
        """As `divmod`, lane by lane."""
        if constant_of_index(divisor) is None:
            divisor = arith.maxui(divisor, index_constant(1))
        if p.is_uniform:
            return Position(arith.divui(p.base, divisor)), Position(arith.remui(p.base, divisor))
        lanes, splat = self.as_lanes(p), self._splat(divisor)
        return Position(None, 0, arith.divui(lanes, splat)), Position(None, 0, arith.remui(lanes, splat))

    def compare(self, predicate: arith.CmpIPredicate, p: Position, bound: ir.Value) -> ir.Value:
        """`p predicate bound` as i1, or a vector of i1 when lanes may differ."""
        if p.is_uniform:
            return arith.cmpi(predicate, p.base, bound)
        return arith.cmpi(predicate, self.as_lanes(p), self._splat(bound))
