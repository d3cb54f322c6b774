# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that read a value transposed, by tiles in the memory of the block.

Neighbouring threads take neighbouring elements of memory both where the value is read and where results are written:
a block computes a square tile of the value along its own last axis, keeps it, and goes on along the results' last axis.

Where both axes are of whole pieces, and tensors are aligned, a thread takes squares of the tile: it reads a piece from
each of the value's rows, turns the square in registers, and leaves it as pieces of the results' rows. A square is
within the tensor or behind its edge as a whole. Otherwise elements are moved one by one, as many as there are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.frame import Frame, OneElement
from shlo_disc.lowering.multiples import Multiples
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.transposes import last_axis
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.index_math import below, is_multiple_of, plus, times
from shlo_disc.lowering_gpu.lane_math import NARROW, LaneMath, multiplier_in
from shlo_disc.lowering_gpu.lanes import Lanes, are_aligned
from shlo_disc.lowering_gpu.tiles import TileForm, sides_of
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers

LEAST = 16
"""Axes that are shorter fill too little of a tile."""

OfTile = Callable[[ir.Value, ir.Value], None]
"""Emits what this thread does at a row and a column of a tile."""


@dataclass
class TransposeLoop:
    """The loop of one kernel over a domain, in tiles of a form. `shared`: an array, by its length and type, in the
    memory of the block."""

    frame: Frame
    domain: Dims
    body: OneElement
    transposes: Sequence[ir.OpView]
    form: TileForm
    narrow: ir.Value | bool
    shared: Callable[[int, ir.Type], ir.Value]

    def __post_init__(self) -> None:
        self.axis, self.last = last_axis(self.transposes[0]), len(self.domain) - 1
        self.sides = sides_of(self.transposes, self.domain)

    def is_tiled(self) -> ir.Value | bool:
        """Tells whether sides are long enough for tiles, and there are fewer than 2^31 of these, which is known or
        found at run time."""
        facts = self.frame.facts
        bounds = [facts.range(size) for size in self.sides]
        if any(high is not None and high < LEAST for _, high in bounds):
            return False
        unproved = [s for s, (low, _) in zip(self.sides, bounds, strict=True) if low is None or low < LEAST]
        least, size_of = index_constant(LEAST), self.frame.size_of
        found = [arith.cmpi(arith.CmpIPredicate.uge, size_of(size), least) for size in unproved]
        if unproved:
            self.frame.guard("tiles", "single elements", *(Relation.ge(s, LEAST) for s in unproved), of_size=True)
        if facts.prove(Relation.lt(self.tiles, NARROW)) is not True:
            # Results of more tiles have 2^39 bytes, which no GPU has, so this is no choice to be noted.
            found.append(below(size_of(self.tiles), index_constant(NARROW)))
        return functools.reduce(arith.andi, found) if found else True

    @property
    def chosen(self) -> Expr:
        """1 where the sides are long enough, else 0."""
        return Expr.minimum(Expr.minimum(*self.sides) // LEAST, 1)

    @cached_property
    def buffers(self) -> list[ir.Value]:
        """The buffers of the tiles."""
        elements = [element_of(op.results[0].type) for op in self.transposes]
        return [self.shared(self.form.length, element.memory()) for element in elements]

    @cached_property
    def grid(self) -> Dims:
        """The number of tiles along each axis."""
        side = self.form.side
        return tuple(ceildiv(d, side) if a in (self.axis, self.last) else d for a, d in enumerate(self.domain))

    @property
    def tiles(self) -> Expr:
        """The number of tiles."""
        return product(self.grid)

    def emit(self) -> Expr:
        """Returns how many blocks have work."""
        total, is_in_pieces, _ = self.frame.size_of(self.tiles), self._is_in_pieces(), self.buffers
        if is_in_pieces is None:
            each_block(total, self._tile_of_elements)
            return self.tiles
        choice = scf.IfOp(is_in_pieces, [], has_else=True)
        for block, tile in ((choice.then_block, self._tile_of_pieces), (choice.else_block, self._tile_of_elements)):
            with ir.InsertionPoint(block):
                each_block(total, tile)
                scf.yield_([])
        return self.tiles

    def _is_in_pieces(self) -> ir.Value | None:
        """Tells at run time whether tiles are of whole pieces; None where they never are."""
        lanes = self.form.lanes
        if not self.form.in_pieces:
            return None
        unproved = [size for size in self.sides if not self.frame.facts.divides(lanes, size)]
        if unproved:
            conditions = [Relation.eq(size % lanes, 0) for size in unproved]
            self.frame.guard(f"tiles in pieces of {lanes}", "tiles in single elements", *conditions)
        of_pieces = [is_multiple_of(self.frame.size_of(size), lanes) for size in unproved]
        return functools.reduce(arith.andi, of_pieces, are_aligned(self.frame))

    def _corner(self, number: ir.Value) -> list[ir.Value]:
        """The position of the first element of a tile."""
        math = LaneMath(1, True, Multiples(1, self.frame.facts), partial(multiplier_in, self.frame))
        rest, places = Position(number), list[ir.Value]()
        for axis in reversed(range(len(self.domain))):
            place = rest
            if axis:
                rest, place = math.divmod(rest, self.frame.size_of(self.grid[axis]))
            is_tiled = axis in (self.axis, self.last)
            places.insert(0, times(place.base, self.form.side) if is_tiled else place.base)
        return places

    def _math(self, width: int) -> LaneMath:
        """Positions of so many lanes, where rows are of as many."""
        multiples = Multiples(width, self.frame.facts, self.sides if width > 1 else ())
        return LaneMath(width, self.narrow, multiples, partial(multiplier_in, self.frame))

    def _left(self, corner: Sequence[ir.Value], axis: int) -> ir.Value:
        """The number of elements from the corner of a tile to the end of an axis."""
        return arith.subi(self.frame.size_of(self.domain[axis]), corner[axis])

    def _places(
        self, corner: Sequence[ir.Value], along_axis: ir.Value, along_last: ir.Value, lanes_along: int | None = None
    ) -> Positions:
        """A place in a tile as a position in the domain, or those of lanes side by side along one of its axes."""
        places = list(corner)
        for axis, inside in ((self.axis, along_axis), (self.last, along_last)):
            places[axis] = arith.addi(corner[axis], inside)
        return tuple(Position(place, int(axis == lanes_along)) for axis, place in enumerate(places))

    def _there(self, op: ir.OpView, places: Positions) -> Positions:
        """A position in the domain as one in what is transposed."""
        permutation = list(integers(op.attributes["permutation"]))
        return tuple(places[permutation.index(axis)] for axis in range(len(places)))

    def _in_tile(self, along_axis: ir.Value, along_last: ir.Value) -> ir.Value:
        """The number of an element in shared memory, of the first row of a group where there are groups of rows."""
        return arith.addi(times(along_axis, self.form.side + 1), along_last)

    # ---- pieces -----------------------------------------------------------------------------------------------------

    def _tile_of_pieces(self, number: ir.Value) -> None:
        math = self._math(self.form.lanes)
        corner = self._corner(number)
        on_axis, on_last = self._left(corner, self.axis), self._left(corner, self.last)
        self._each_square(on_last, on_axis, lambda row, column: self._turn(math, corner, column, row))
        gpu.barrier()
        self._each_square(on_axis, on_last, lambda row, column: self._write_square(math, corner, row, column))
        gpu.barrier()

    def _each_square(self, rows: ir.Value, columns: ir.Value, body: OfTile) -> None:
        """`body` at the first row and column of each square of this thread that is before the ends, neighbouring
        threads in neighbouring columns."""
        lanes, pieces = self.form.lanes, self.form.pieces
        row = arith.divui(thread(), index_constant(pieces))
        column = times(arith.remui(thread(), index_constant(pieces)), lanes)
        loop = scf.ForOp(index_constant(0), index_constant(pieces), index_constant(THREADS // pieces), [])
        with ir.InsertionPoint(loop.body):
            first = times(arith.addi(loop.induction_variable, row), lanes)
            is_inside = arith.andi(below(first, rows), below(column, columns))
            when(is_inside, lambda: body(first, column))
            scf.yield_([])

    def _turn(self, math: LaneMath, corner: Sequence[ir.Value], along_axis: ir.Value, along_last: ir.Value) -> None:
        """Keep a square of each value, of which pieces lie along the axis, as pieces along the last one."""
        lanes, elements = self.form.lanes, Lanes.of(self.frame, math)
        for op, buffer in zip(self.transposes, self.buffers, strict=True):
            element, rows = element_of(op.results[0].type), list[ir.Value]()
            for row in range(lanes):
                places = self._places(corner, along_axis, plus(along_last, row), lanes_along=self.axis)
                value = elements.splat(elements.at(op.operands[0], self._there(op, places)))
                rows.append(to_memory(value, element))
            first, alignment = self._in_tile(along_axis, along_last), _alignment(op, lanes)
            for column in range(lanes):
                turned = vector.from_elements(rows[0].type, [vector.extract(row, [], [column]) for row in rows])
                vector.store(turned, buffer, [plus(first, column * self.form.side)], alignment=alignment)

    def _write_square(
        self, math: LaneMath, corner: Sequence[ir.Value], along_axis: ir.Value, along_last: ir.Value
    ) -> None:
        """The pieces of each result in a square, one after the other."""
        first = self._in_tile(along_axis, along_last)
        loop = scf.ForOp(index_constant(0), index_constant(self.form.lanes), index_constant(1), [])
        with ir.InsertionPoint(loop.body):
            row = loop.induction_variable
            places = self._places(corner, arith.addi(along_axis, row), along_last, lanes_along=self.last)
            self._write(math, places, arith.addi(first, times(row, self.form.side)))
            scf.yield_([])

    # ---- single elements --------------------------------------------------------------------------------------------

    def _tile_of_elements(self, number: ir.Value) -> None:
        math = self._math(1)
        corner = self._corner(number)
        on_axis, on_last = self._left(corner, self.axis), self._left(corner, self.last)
        self._each_element(on_last, on_axis, lambda row, column: self._keep(math, corner, column, row))
        gpu.barrier()
        self._each_element(on_axis, on_last, lambda row, column: self._write_element(math, corner, row, column))
        gpu.barrier()

    def _each_element(self, rows: ir.Value, columns: ir.Value, body: OfTile) -> None:
        """`body` at the elements of this thread that are before the ends, neighbouring threads in neighbouring
        columns."""
        side = index_constant(self.form.side)
        row, column = arith.divui(thread(), side), arith.remui(thread(), side)

        def in_column() -> None:
            loop = scf.ForOp(row, arith.minui(rows, side), index_constant(THREADS // self.form.side), [])
            with ir.InsertionPoint(loop.body):
                body(loop.induction_variable, column)
                scf.yield_([])

        when(below(column, columns), in_column)

    def _keep(self, math: LaneMath, corner: Sequence[ir.Value], along_axis: ir.Value, along_last: ir.Value) -> None:
        """One element of each value."""
        elements, places = Lanes.of(self.frame, math), self._places(corner, along_axis, along_last)
        for op, buffer in zip(self.transposes, self.buffers, strict=True):
            value = to_memory(elements.at(op.operands[0], self._there(op, places)), element_of(op.results[0].type))
            memref.store(value, buffer, [self._in_tile(along_axis, along_last)])

    def _write_element(
        self, math: LaneMath, corner: Sequence[ir.Value], along_axis: ir.Value, along_last: ir.Value
    ) -> None:
        """One element of each result."""
        self._write(math, self._places(corner, along_axis, along_last), self._in_tile(along_axis, along_last))

    def _write(self, math: LaneMath, positions: Positions, place: ir.Value) -> None:
        """The element, or the piece, of each result at a position, whose transposes lie at a place in their tiles."""
        elements = Lanes.of(self.frame, math)
        for op, buffer in zip(self.transposes, self.buffers, strict=True):
            elements.cached[op.results[0]] = partial(_kept, op, buffer, math.width, positions, place)
        self.body(elements, positions, False)


def _kept(
    op: ir.OpView, buffer: ir.Value, lanes: int, here: Positions, place: ir.Value, positions: Positions
) -> ir.Value | None:
    """The element, or the piece, of a transpose at a place in its tile; None for one that stands elsewhere."""
    if positions != here:
        return None
    element = element_of(op.results[0].type)
    if lanes == 1:
        return from_memory(memref.load(buffer, [place]), element)
    type_ = ir.VectorType.get([lanes], element.memory())
    return from_memory(vector.load(type_, buffer, [place], alignment=_alignment(op, lanes)), element)


def _alignment(op: ir.OpView, lanes: int) -> int:
    """The bytes of a piece of a transpose, which lies at a multiple of them."""
    return lanes * bytes_of(element_type_of(op.results[0]))
