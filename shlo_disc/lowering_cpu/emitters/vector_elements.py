# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of CPU kernels: lanes that stand in a pattern are read by vector loads and shuffles.

A reversal, a step of 2, a repetition and an interleaving read each line of memory once so, where a gather would read
element by element.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.lowering.element_types import Element, from_memory
from shlo_disc.lowering.elements import Elements, Positions, splat_constant
from shlo_disc.lowering.multiples import Multiples, constant_of_index
from shlo_disc.lowering.positions import Position, PositionMath, at_distances, index_constant
from shlo_disc.lowering_cpu.emitters.panels import PackedMatrix, is_missing
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector

WIDEST = 4
"""Vectors that are read for one, at most; lanes further apart are gathered."""


class Part(NamedTuple):
    """A place `start` behind `whole`, which is a multiple of `period`; 0 is the one multiple of 0."""

    whole: ir.Value
    start: int
    period: int


class VectorMath(PositionMath):
    """For a vector of `width` lanes. multiples: the indices that are known to be multiples of the width.

    parts: what is known of other indices.
    """

    def __init__(self, width: int, multiples: Multiples, parts: dict[ir.Value, Part]):
        super().__init__(width)
        self.multiples = multiples
        self.parts = parts

    def divmod(self, p: Position, divisor: ir.Value) -> tuple[Position, Position]:
        """Quotient and remainder of a nonnegative position, in a pattern where lanes start at a multiple of both.

        Lanes that lie within a multiple of the divisor have one quotient.
        """
        number = constant_of_index(divisor)
        if number is None or number < 1 or p.lanes is not None or p.is_uniform:
            return self.divide_lanes(p, divisor)
        part = self._part(p.base)
        if part is None:
            return self.divide_lanes(p, divisor)
        places = [part.start + distance for distance in p.distances(self.width)]
        if part.period % number == 0:
            whole = self._quotient(part, divisor, number)
            quotients, rests = [place // number for place in places], [place % number for place in places]
            return at_distances(whole, quotients), at_distances(index_constant(0), rests)
        if part.period and number % part.period == 0 and min(places) >= 0 and max(places) < part.period:
            quotient, rest = arith.divui(part.whole, divisor), arith.remui(part.whole, divisor)
            return Position(quotient), at_distances(rest, places)
        return self.divide_lanes(p, divisor)

    def _part(self, base: ir.Value) -> Part | None:
        """The multiple that a base is known to lie behind: a constant behind 0, which is a multiple of any number."""
        constant = constant_of_index(base)
        if constant is not None:
            return Part(index_constant(0), constant, 0)
        if base not in self.parts and self.multiples.holds(base):
            return Part(base, 0, self.width)
        return self.parts.get(base)

    def _quotient(self, part: Part, divisor: ir.Value, number: int) -> ir.Value:
        if part.period == 0:
            return part.whole
        whole = arith.divui(part.whole, divisor)
        self.parts[whole] = Part(whole, 0, part.period // number)
        return whole


@dataclass
class VectorElements(Elements):
    """The emitter of `width` lanes of a CPU kernel. panels: packed forms of matrices that may be missing, by their
    buffers."""

    panels: Mapping[ir.Value, PackedMatrix] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.multiples = Multiples(self.width, self.facts)
        self.parts: dict[ir.Value, Part] = {}
        self.math = VectorMath(self.width, self.multiples, self.parts)

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

    def load(self, buffer: ir.Value, positions: Positions, element: Element, dims: Dims) -> ir.Value:
        """As `Elements.load`, from the packed form of a matrix that is missing."""
        packed = self.panels.get(buffer)
        if packed is None:
            return super().load(buffer, positions, element, dims)
        is_uniform = all(p.is_uniform for p in positions)
        type_ = element.register() if is_uniform else ir.VectorType.get([self.width], element.register())
        choice = scf.IfOp(is_missing(buffer), [type_], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            offset = packed.offset(self.math, positions)
            if is_uniform:
                found = super().load(packed.buffer, (Position(index_constant(0)), offset), packed.element, dims)
            else:
                found = from_memory(self.gather(packed.buffer, offset, packed.element, len(dims)), packed.element)
            scf.yield_([found])
        with ir.InsertionPoint(choice.else_block):
            scf.yield_([super().load(buffer, positions, element, dims)])
        packed.tested.append(choice.else_block)
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
        valid = (True,) * self.width if mask is None else known_lanes(mask)
        if offset.lanes is None and valid is not None:
            pairs = zip(offset.distances(self.width), valid, strict=True)
            distances = [distance if is_valid else None for distance, is_valid in pairs]
            read = [distance for distance in distances if distance is not None]
            if not read:
                return splat_constant(ir.VectorType.get([self.width], element.memory()))
            if max(read) - min(read) < WIDEST * self.width:
                return self._spread(buffer, offset.base, distances, element, rank)
        return super().gather(buffer, offset, element, rank)

    def _spread(
        self, buffer: ir.Value, base: ir.Value, distances: list[int | None], element: Element, rank: int
    ) -> ir.Value:
        """The lanes at some distances from a base, picked from vectors of all that lies between them; 0 for None.

        Nothing outside of the lanes is read: the last vector ends where the last lane stands. Vectors have 2 ** n
        elements, as those of processors have.
        """
        read = [distance for distance in distances if distance is not None]
        first, last = min(read), max(read)
        length = 1 << (min(self.width, last - first + 1).bit_length() - 1)
        starts = [*range(first, last + 2 - length, length)]
        if starts[-1] + length <= last:
            starts.append(last + 1 - length)
        origin = [index_constant(0)] * (rank - 1)
        type_ = ir.VectorType.get([length], element.memory())
        result = splat_constant(ir.VectorType.get([self.width], element.memory()))
        for start in starts:
            loaded = vector.load(type_, buffer, [*origin, arith.addi(base, index_constant(start))])
            lanes = [d - start if d is not None and 0 <= d - start < length else None for d in distances]
            picked = [n if lane is None else self.width + lane for n, lane in enumerate(lanes)]
            result = vector.shuffle(result, loaded, picked)
        return result


# ---- masks that are known -------------------------------------------------------------------------------------------

_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add, "arith.andi": operator.and_, "arith.muli": operator.mul, "arith.ori": operator.or_,
    "arith.subi": operator.sub, "arith.xori": operator.xor,
}  # fmt: skip

_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
    operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip
"""By the number of the predicate: equality, signed and unsigned order."""

_FIRST_UNSIGNED = 6
_WORD = 1 << 64


def known_lanes(mask: ir.Value) -> tuple[bool, ...] | None:
    """The lanes of a mask that is made of constants alone; None for any other."""
    (count,) = ir.VectorType(mask.type).shape
    lanes = _numbers(mask, count)
    return None if lanes is None else tuple(bool(lane & 1) for lane in lanes)


def _numbers(value: ir.Value, count: int) -> list[int] | None:
    """The indices or flags in the lanes of a value, a scalar in each of them; None where not all are constants."""
    if isinstance(value.owner, ir.Block) or str(getattr(value.type, "element_type", value.type)) not in ("index", "i1"):
        return None
    op = value.owner.operation
    if op.name == "arith.constant":
        return _constants(op.attributes["value"], count)
    if op.name == "vector.broadcast":
        return _numbers(op.operands[0], count)
    if op.name not in _INTEGERS and op.name != "arith.cmpi":
        return None
    left, right = (_numbers(operand, count) for operand in op.operands)
    if left is None or right is None:
        return None
    if op.name in _INTEGERS:
        return [_signed(_INTEGERS[op.name](a, b)) for a, b in zip(left, right, strict=True)]
    if not str(op.operands[0].type).endswith(("index", "index>")):
        return None
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if predicate >= _FIRST_UNSIGNED:
        left, right = ([number % _WORD for number in numbers] for numbers in (left, right))
    return [int(_COMPARISONS[predicate](a, b)) for a, b in zip(left, right, strict=True)]


def _constants(attribute: ir.Attribute, count: int) -> list[int] | None:
    if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr):
        return [_signed(int(attribute.value))] * count
    if not isinstance(attribute, ir.DenseIntElementsAttr):
        return None
    numbers = [_signed(int(attribute[at])) for at in range(len(attribute))]
    return numbers if len(numbers) == count else None


def _signed(number: int) -> int:
    """Read a number as indices have it: 64 bits with a sign."""
    return (number + _WORD // 2) % _WORD - _WORD // 2


__all__ = ["VectorElements"]
