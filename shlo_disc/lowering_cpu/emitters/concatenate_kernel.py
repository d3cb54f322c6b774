# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Concatenations of many pieces: a loop over the elements of each piece, which writes them where they belong.

Choosing the piece for each element, as a loop over the result does, takes as many comparisons as there are pieces.
A work item is an index of the axes up to the one along which the pieces follow each other; that axis is among
them unless it is the last one of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from shlo_disc.lowering.element_types import Element, element_of
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules import INDEX_RULES
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.pieces import piece_starts
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.lowering_cpu.emitters.piece_table import PieceTable
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref
from shlo_disc.shape_dialect.ops import SLICES, index_map_of
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.index_maps import ONE, Coordinate
from shlo_disc.shape_dialect.symbolic.expr import Expr

MANY = 4
"""A table has at least so many pieces."""


def build_concatenation(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of work items and the cost of one."""
    kernel = ConcatenateKernel(frame)
    kernel.emit()
    cost = sum(op_cost(op) for op in frame.fusion.entry_block.operations) // len(kernel.pieces)
    return product(kernel.dims[: kernel.leading]), max(1, cost) * product(kernel.dims[kernel.leading :])


@dataclass
class _Addresses(Elements):
    """Finds where an element lies instead of reading it: `found` is its buffer and its offset there."""

    found: tuple[ir.Value, ir.Value] = field(init=False)

    def load(self, buffer: ir.Value, positions: Positions, element: Element, dims: Dims) -> ir.Value:
        """The offset, which nobody uses."""
        offset = self.linear_offset(positions, dims).base
        self.found = buffer, offset
        return offset


class ConcatenateKernel:
    """One concatenation.

    axis: along which its pieces lie. leading: the axes that work items are of. parts: the pieces and where each one
    begins, and tables of those that are whole buffers.
    """

    def __init__(self, frame: CpuFrame):
        (output,) = frame.outputs
        op = frame.maker()
        self.frame = frame
        self.pieces = list(op.operands)
        self.width = max(1, frame.width() // frame.options.unroll)
        self.dims = dims_of(output)
        self.axis = ir.IntegerAttr(op.attributes["dimension"]).value
        self.lies_in_rows = self.axis == len(self.dims) - 1 and self.axis > 0
        self.leading = self.axis if self.lies_in_rows else self.axis + 1

    def emit(self) -> None:
        """All items from `begin` to `end`."""
        frame = self.frame
        self.parts = list(self._parts(piece_starts(frame, self.pieces, self.axis)))
        if self.lies_in_rows:
            for_range(frame.begin, frame.end, lambda row: self._blocks(row, None))
            return
        if self.axis == 0:
            self._blocks(index_constant(0), (frame.begin, frame.end))
            return
        length = arith.maxui(frame.size_of(self.dims[self.axis]), index_constant(1))
        first = arith.divui(frame.begin, length)
        past = arith.ceildivui(frame.end, length)

        def block(outer: ir.Value) -> None:
            origin = arith.muli(outer, length)
            self._blocks(outer, (arith.subi(frame.begin, origin), arith.subi(frame.end, origin)))

        for_range(first, past, block)

    def _blocks(self, outer: ir.Value, within: tuple[ir.Value, ir.Value] | None) -> None:
        """The pieces' parts at one index of the axes before theirs; `within`: the places on that axis to write."""
        leading = tuple(map(Position, delinearize(outer, self.dims[: self.axis], self.frame.size_of)))
        for part in self.parts:
            if isinstance(part, PieceTable):
                self._whole(part, outer, within)
                continue
            piece, start = part
            size = self.frame.size_of(dims_of(piece)[self.axis])
            self._part(piece, start, leading, *_places(start, size, within))

    def _parts(self, starts: Sequence[ir.Value]) -> Iterator[PieceTable | tuple[ir.Value, ir.Value]]:
        """The pieces, those that follow each other and are whole buffers in tables."""
        numbers = range(len(self.pieces))
        for is_whole, found in groupby(numbers, lambda number: self._is_whole(self.pieces[number])):
            group = list(found)
            if not is_whole or len(group) < MANY:
                yield from ((self.pieces[number], starts[number]) for number in group)
                continue
            last = group[-1]
            end = arith.addi(starts[last], self.frame.size_of(dims_of(self.pieces[last])[self.axis]))
            origin = (Position(index_constant(0)),) * len(self.dims)
            addresses = [self._source(self.pieces[number], origin) for number in group]
            yield PieceTable(addresses, [*(starts[number] for number in group), end])

    def _is_whole(self, piece: ir.Value) -> bool:
        """Tells whether a piece is a buffer; of constant sizes, its parts of rows are better copied as such."""
        return defining_op(piece) is None and not (self.lies_in_rows and dims_of(piece)[self.axis].constant is not None)

    def _whole(self, table: PieceTable, outer: ir.Value, within: tuple[ir.Value, ir.Value] | None) -> None:
        """The parts of a table's pieces."""
        inner = self.frame.size_of(product(self.dims[self.axis + 1 :]))
        length = self.frame.size_of(self.dims[self.axis])
        size = bytes_of(element_type_of(self.pieces[0]))
        target = _address(self.frame.output_buffers[0], index_constant(0), size)

        def piece(address: ir.Value, start: ir.Value, places: ir.Value) -> None:
            begin, end = _places(start, places, within)
            count = arith.muli(arith.maxsi(arith.subi(end, begin), index_constant(0)), inner)
            at = arith.muli(arith.addi(arith.muli(outer, places), begin), inner)
            to = arith.muli(arith.addi(arith.muli(outer, length), arith.addi(start, begin)), inner)
            scale = index_constant(size)
            _copy_bytes(
                arith.addi(target, arith.muli(to, scale)),
                arith.addi(address, arith.muli(at, scale)),
                arith.muli(count, scale),
            )

        table.for_each(piece)

    def _part(self, piece: ir.Value, start: ir.Value, leading: Positions, begin: ir.Value, end: ir.Value) -> None:
        """The places [begin, end) of a piece."""
        inner = self.dims[self.axis + 1 :]
        if inner and _is_run(piece, self.axis):
            size = self.frame.size_of(product(inner))
            zeros = (Position(index_constant(0)),) * len(inner)
            count = arith.muli(arith.maxsi(arith.subi(end, begin), index_constant(0)), size)
            self._copy(piece, start, (*leading, Position(begin), *zeros), count)
            return
        if self.axis == len(self.dims) - 1:
            self._lanes(piece, start, leading, begin, end)
            return
        middle = self.dims[self.axis + 1 : -1]
        rows = self.frame.size_of(product(middle))

        def row(index: ir.Value, linear: ir.Value) -> None:
            inner = map(Position, delinearize(linear, middle, self.frame.size_of))
            last = self.frame.size_of(self.dims[-1])
            self._lanes(piece, start, (*leading, Position(index), *inner), index_constant(0), last)

        def place(index: ir.Value) -> None:
            if middle:
                for_range(index_constant(0), rows, lambda linear: row(index, linear))
            else:
                row(index, index_constant(0))

        for_range(begin, end, place)

    def _lanes(self, piece: ir.Value, start: ir.Value, outer: Positions, begin: ir.Value, end: ir.Value) -> None:
        """The elements [begin, end) along the last axis."""
        if _is_run(piece, len(self.dims) - 1):
            count = arith.maxsi(arith.subi(end, begin), index_constant(0))
            self._copy(piece, start, (*outer, Position(begin)), count)
            return
        (buffer,) = self.frame.output_buffers
        is_single = dims_of(piece)[-1].constant == 1
        elements = self.frame.elements(1 if is_single else self.width)
        elements.has_one_body = True

        def body(position: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            here = (*outer, position)
            store(buffer, elements.at(piece, here), self._target(here, start), element_of(piece.type), elements)
            return []

        over_lanes(elements, begin, end, False, [], body)

    def _target(self, here: Positions, start: ir.Value) -> Positions:
        """The position at which an element of a piece is written."""
        there = here[self.axis]
        moved = Position(arith.addi(there.base, start), there.step)
        return (*here[: self.axis], moved, *here[self.axis + 1 :])

    def _copy(self, piece: ir.Value, start: ir.Value, here: Positions, count: ir.Value) -> None:
        """`count` elements from `here` on, which follow each other in memory."""
        target = self.frame.elements(1).linear_offset(self._target(here, start), self.dims)
        size = bytes_of(element_type_of(piece))
        to = _address(self.frame.output_buffers[0], target.base, size)
        _copy_bytes(to, self._source(piece, here), arith.muli(count, index_constant(size)))

    def _source(self, piece: ir.Value, here: Positions) -> ir.Value:
        """The address of an element of a piece that is part of a buffer."""
        frame = self.frame
        reader = _Addresses(1, frame.facts, frame.size_of, frame.library, INDEX_RULES, frame.elements(1).memory)
        reader.at(piece, here)
        return _address(*reader.found, bytes_of(element_type_of(piece)))


def _is_run(piece: ir.Value, axis: int) -> bool:
    """Tells whether a piece is part of a buffer, as the sizes say, with its elements from `axis` on side by side."""
    while (op := defining_op(piece)) is not None:
        if not _is_slice_by_one(op, axis):
            return False
        if dims_of(piece)[axis + 1 :] != dims_of(op.operands[0])[axis + 1 :]:
            return False
        piece = op.operands[0]
    return True


def _is_slice_by_one(op: ir.Operation, axis: int) -> bool:
    """Tells whether an op is a slice that sizes alone place, and takes neighbours along `axis`."""
    if op.name not in SLICES:
        return False
    (read,) = index_map_of(op) or ()
    placed = [c for c in read.at if isinstance(c, Coordinate) and isinstance(c.plus, Expr)]
    return len(placed) == len(read.at) and placed[axis].stride == ONE


def _places(start: ir.Value, size: ir.Value, within: tuple[ir.Value, ir.Value] | None) -> tuple[ir.Value, ir.Value]:
    """The places of a piece that are to be written, from its own start on."""
    if within is None:
        return index_constant(0), size
    begin = arith.maxsi(index_constant(0), arith.subi(within[0], start))
    return begin, arith.minsi(size, arith.subi(within[1], start))


def _address(buffer: ir.Value, offset: ir.Value, size: int) -> ir.Value:
    """The address of an element of `size` bytes."""
    start = memref.ExtractAlignedPointerAsIndexOp(buffer).result
    return arith.addi(start, arith.muli(offset, index_constant(size)))


def _copy_bytes(target: ir.Value, source: ir.Value, count: ir.Value) -> None:
    """Copy `count` bytes between addresses."""
    i64, pointer = ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
    operands = [
        ir.Operation.create("llvm.inttoptr", results=[pointer], operands=[arith.index_cast(i64, address)]).results[0]
        for address in (target, source)
    ]
    attributes: dict[str, ir.Attribute] = {"isVolatile": ir.BoolAttr.get(False)}
    ir.Operation.create("llvm.intr.memcpy", operands=[*operands, arith.index_cast(i64, count)], attributes=attributes)
