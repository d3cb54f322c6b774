# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of one thread: several side by side, in vectors; memory is accessed as wide as is known to be safe.

A tensor is the flat array behind its pointer. Lanes that stand side by side are one access. It has 16 bytes where it is
known to start at a multiple of that; one that is not known to is divided by LLVM, for a GPU refuses it. Lanes that
stand anywhere are read one by one, and those that are not to be read are not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shlo_disc.lowering.element_types import Element, element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Elements, Positions, constant_of, splat_constant
from shlo_disc.lowering.elementwise import Elementwise, same_lanes
from shlo_disc.lowering.frame import Frame
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu import device_math
from shlo_disc.lowering_gpu.index_math import is_multiple_of
from shlo_disc.lowering_gpu.lane_math import LaneMath
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr

ACCESS_BYTES = 16
"""The most that a thread moves by one instruction, which has to start at a multiple of it."""


def are_aligned(frame: Frame) -> ir.Value:
    """Tells at run time whether all tensors of a kernel start at a multiple of `ACCESS_BYTES`."""
    wide = [b for b in (*frame.input_buffers, *frame.output_buffers) if ir.MemRefType(b.type).rank]
    places = [memref.ExtractAlignedPointerAsIndexOp(buffer).result for buffer in wide]
    return is_multiple_of(functools.reduce(arith.ori, places), ACCESS_BYTES)


@dataclass(frozen=True)
class Place:
    """The position of a loop: along the axes that are not of size 1, and in the order of memory.

    leading: for each axis, the row-major offset over it and those before it.
    """

    dims: Dims = ()
    positions: Positions = ()
    leading: Positions = ()

    def together(self, places: Sequence[tuple[Position, Expr]]) -> int:
        """The number of a tensor's axes that are the loop's first ones, so that they have a common leading offset."""
        count = 0
        for (position, size), (own, there) in zip(places, zip(self.positions, self.dims, strict=True), strict=False):
            if position != own or (count and size != there):
                break
            count += 1
        return count


class _EqualLanes(Elementwise):
    """Divides each lane by itself: a lane's number is the same whatever stands beside it."""

    def emit(self, op: ir.OpView, operands: list[ir.Value]) -> ir.Value:
        return super().emit(op, same_lanes(operands))


@dataclass
class Lanes(Elements):
    """The emitter of one thread's elements, `width` side by side."""

    place: Place = field(default_factory=Place)
    lane_math: LaneMath = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.elementwise = _EqualLanes(self.library)

    @classmethod
    def of(cls, frame: Frame, math: LaneMath) -> Lanes:
        """Those of a kernel that reads its inputs."""
        return cls.over(frame, dict(zip(frame.inputs, frame.input_buffers, strict=True)), math)

    @classmethod
    def over(cls, frame: Frame, memory: dict[ir.Value, ir.Value], math: LaneMath) -> Lanes:
        """Those of a kernel that reads some tensors."""
        size_of = math.multiples.noting(frame.size_of)
        found = cls(math.width, frame.facts, size_of, device_math, INDEX_RULES, memory)
        found.math = found.lane_math = math
        return found

    # ---- memory ---------------------------------------------------------------------------------------------------

    def load(self, buffer: ir.Value, positions: Positions, element: Element, dims: Dims) -> ir.Value:
        """Read a tensor: one scalar, one vector, or lane by lane."""
        if not dims:
            return from_memory(self._load_scalar(buffer, [], element), element)
        flat, offset = self._flat(buffer, dims), self.linear_offset(positions, dims)
        if offset.is_uniform:
            raw = self._load_scalar(flat, [offset.base], element)
        elif self.validity.mask is None and _is_side_by_side(offset):
            raw = self._load_together(flat, offset.base, element)
        else:
            raw = self._load_apart(flat, offset, element)
        return from_memory(raw, element)

    def _load_together(self, flat: ir.Value, first: ir.Value, element: Element) -> ir.Value:
        type_ = self.math.vector_type(element.memory())
        options = self._alignment(first, element)
        return _where(
            self.validity.predicate,
            lambda: vector.load(type_, flat, [first], **options),
            lambda: splat_constant(type_),
        )

    def _load_apart(self, flat: ir.Value, offset: Position, element: Element) -> ir.Value:
        type_, mask = element.memory(), self.lane_mask()
        lanes = []
        for lane in range(self.width):
            place = self.lane_math.lane(offset, lane)
            valid = None if mask is None else vector.extract(mask, [], [lane])
            read = functools.partial(memref.load, flat, [place])
            lanes.append(_where(valid, read, lambda: constant_of(type_)))
        return vector.from_elements(self.math.vector_type(type_), lanes)

    def store(self, buffer: ir.Value, value: ir.Value, positions: Positions, output: ir.Value) -> None:
        """Write an output's element(s): one scalar, one vector, or lane by lane."""
        element, dims = element_of(output.type), dims_of(output)
        value = to_memory(value, element)
        if not dims:
            memref.store(value, buffer, [])
            return
        flat, offset = self._flat(buffer, dims), self.linear_offset(positions, dims)
        if offset.is_uniform:
            memref.store(value, flat, [offset.base])
        elif _is_side_by_side(offset):
            vector.store(self.splat(value), flat, [offset.base], **self._alignment(offset.base, element))
        else:
            lanes = self.splat(value)
            for lane in range(self.width):
                memref.store(vector.extract(lanes, [], [lane]), flat, [self.lane_math.lane(offset, lane)])

    def _alignment(self, first: ir.Value, element: Element) -> dict[str, int]:
        """The alignment of an access of all lanes; empty where it is not known to be more than an element's."""
        if not self.lane_math.multiples.holds(first):
            return {}
        return {"alignment": min(ACCESS_BYTES, self.width * _bytes(element))}

    def _flat(self, buffer: ir.Value, dims: Dims) -> ir.Value:
        """The array that a view of a tensor is of."""
        pointer = buffer.owner.operands[0]  # type: ignore[union-attr]
        total = product(dims).constant
        sizes = [] if total is not None else [functools.reduce(arith.muli, map(self.size_of, dims))]
        length = DYNAMIC if total is None else total
        one = pointer.type
        type_ = ir.MemRefType.get(
            [length], one.element_type, layout=ir.StridedLayoutAttr.get(0, [1]), memory_space=one.memory_space
        )
        return memref.ReinterpretCastOp(type_, pointer, [], sizes, [], [0], [length], [1]).result

    def linear_offset(self, positions: Positions, dims: Dims) -> Position:
        """The row-major offset of a position. Over the loop's own axes, the loop knows it."""
        offset: Position | None = None
        rest = [(p, d) for p, d in zip(positions, dims, strict=True) if d.constant != 1]
        while rest:
            count = self.place.together(rest)
            here = self.place.leading[count - 1] if count else rest[0][0]
            taken, rest = rest[: max(count, 1)], rest[max(count, 1) :]
            if offset is None:
                offset = here
                continue
            for _, size in taken:
                offset = self.math.scale(offset, self.size_of(size), size.constant)
            offset = self.math.add(offset, here)
        return offset or Position(index_constant(0))


def _is_side_by_side(offset: Position) -> bool:
    return offset.lanes is None and offset.step == 1


def _bytes(element: Element) -> int:
    return max(8, element.bits) // 8


def _where(condition: ir.Value | None, yes: Callable[[], ir.Value], no: Callable[[], ir.Value]) -> ir.Value:
    """`yes()` where the condition holds or is None, and else `no()`, a constant."""
    if condition is None:
        return yes()
    other = no()
    choice = scf.IfOp(condition, [other.type], has_else=True)
    for block, value in ((choice.then_block, yes), (choice.else_block, lambda: other)):
        with ir.InsertionPoint(block):
            scf.yield_([value()])
    return choice.results[0]
