# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the elements of a kernel's results, spread over the threads of a grid.

A thread takes several elements side by side, a piece, which are one access of 16 bytes in the widest tensor. That needs
pointers to multiples of 16 bytes. Where the last axis is a multiple of a piece, all of a piece is in one row; else a
piece may begin in one row and end in the next. All of that is found out at run time where it is not known. What is left
over, be it all of the work, is done one element at a time.

An element's index along each axis is found by division: in 32 bits where there are fewer than 2^31 elements, by what
the facts or the sizes at run time say. Over one axis there is none: tensors are read where they are written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.frame import Frame, OneElement
from shlo_disc.lowering.index_rules import folds, windows
from shlo_disc.lowering.multiples import Multiples
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.transposes import transposed
from shlo_disc.lowering_gpu.grid import THREADS, each_thread
from shlo_disc.lowering_gpu.index_math import is_multiple_of
from shlo_disc.lowering_gpu.lane_math import NARROW, LaneMath, multiplier_in
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES, Lanes, Place, are_aligned
from shlo_disc.lowering_gpu.tiles import tile_form
from shlo_disc.lowering_gpu.transpose_loop import TransposeLoop
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector
from shlo_disc.shape_dialect.ops import PADS, RESHAPES
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation

LONGEST = 512
"""Instructions of a thread's lanes together, at most: longer ones would take too many registers."""

_FOLDS = folds.RULES.keys() | windows.RULES.keys()
"""Ops that take long for one element, which need all threads that there are."""


_SPREADING = PADS | windows.RULES.keys()
"""Ops whose positions lie outside of all tensors, and may be divided there."""


@dataclass
class ElementLoop:
    """The loop of one kernel over the elements of a domain. `shared`: as in `TransposeLoop`."""

    frame: Frame
    domain: Dims
    body: OneElement
    shared: Callable[[int, ir.Type], ir.Value]

    def __post_init__(self) -> None:
        self.axes = tuple(d for d in self.domain if d.constant != 1)
        self.total = product(self.domain)
        self.names = {op.operation.name for op in self.frame.fusion.entry_block.operations}

    def emit(self) -> tuple[Expr, Expr]:
        """Returns the number of work items, one for a thread, and the elements of one."""
        narrow = self._narrow()
        transposes = [] if self.names & _SPREADING else transposed(self.frame.outputs, self.domain)
        if not transposes:
            return self._elements(narrow)
        form = tile_form(self.frame, self.domain, transposes, LONGEST, has_folds=bool(self.names & _FOLDS))
        tiles = TransposeLoop(self.frame, self.domain, self.body, transposes, form, narrow, self.shared)
        is_tiled = tiles.is_tiled()
        if is_tiled is False:
            return self._elements(narrow)
        each = Expr.const(form.side**2 // THREADS)
        if is_tiled is True:
            return tiles.emit() * THREADS, each
        self.lanes = 1
        choice = scf.IfOp(is_tiled, [], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            tiled = tiles.emit() * THREADS
            scf.yield_([])
        with ir.InsertionPoint(choice.else_block):
            single, _ = self._elements(narrow)
            scf.yield_([])
        chosen = tiles.chosen
        return chosen * tiled + (1 - chosen) * single, each

    def _elements(self, narrow: ir.Value | bool) -> tuple[Expr, Expr]:
        """All elements. What divides them is chosen once, where it is found at run time, for loops of their own."""
        if isinstance(narrow, bool):
            return self._loops(narrow)
        choice = scf.IfOp(narrow, [], has_else=True)
        for block, is_narrow in ((choice.then_block, True), (choice.else_block, False)):
            with ir.InsertionPoint(block):
                found = self._loops(is_narrow)
                scf.yield_([])
        return found

    def _loops(self, narrow: bool) -> tuple[Expr, Expr]:
        """Pieces of several lanes, then single elements."""
        total = self.frame.size_of(self.total)
        if self.lanes == 1:
            each_thread(total, self._at(1, narrow))
            return self.total, Expr.const(1)
        begin = index_constant(0)
        for is_taken, in_one_row in self._ways():
            count = arith.divui(total, index_constant(self.lanes))
            pieces = arith.select(is_taken, count, index_constant(0))
            each_thread(pieces, self._at(self.lanes, narrow, in_one_row))
            begin = arith.addi(begin, arith.muli(pieces, index_constant(self.lanes)))
        each_thread(total, self._at(1, narrow), begin)
        return self._items(), Expr.const(self.lanes)

    # ---- how much there is ----------------------------------------------------------------------------------------

    def _divided(self) -> list[Expr]:
        """The element counts of the tensors whose positions are divided: the domain, and what is reshaped."""
        ops = self.frame.fusion.entry_block.operations
        reshaped = [product(dims_of(op.results[0])) for op in ops if op.operation.name in RESHAPES]
        return list(dict.fromkeys([*([self.total] if self._is_divided else []), *reshaped]))

    @property
    def _is_divided(self) -> bool:
        """Tells whether a position in the domain is found by division."""
        return len(self.axes) > 1

    def _is_below(self, size: Expr) -> bool:
        most = self.frame.facts.range(size)[1]
        return most is not None and most < NARROW

    @cached_property
    def lanes(self) -> int:
        """The elements of a thread that stand side by side: in pieces of rows, else in pieces across rows."""
        if not self.axes or self.names & _FOLDS:
            return 1
        last = self.axes[-1]
        along = [v for v in self.frame.tensors if last in dims_of(v)[-1:]] + self.frame.outputs
        widest = ACCESS_BYTES // max(bytes_of(element_type_of(v)) for v in along)
        size = total_code_size(self.frame.fusion.entry_block.operations)
        most = self.frame.facts.range(self.total)[1]
        while widest > 1 and (widest * size > LONGEST or (most is not None and most < widest)):
            widest //= 2
        whole = next((n for n in _halves(widest) if self._may_be_whole(n)), 1)
        return widest if whole == 1 and self._may_be_across(widest) else whole

    def _may_be_whole(self, lanes: int) -> bool:
        """Tells whether it is possible that rows are of several whole pieces."""
        last = self.axes[-1].constant
        return lanes > 1 and (len(self.axes) == 1 or last is None or last % lanes == 0)

    def _may_be_across(self, lanes: int) -> bool:
        """Tells whether pieces may begin in one row and end in the next, but not behind that."""
        most = self.frame.facts.range(self.axes[-1])[1]
        return not self.names & (_SPREADING | RESHAPES) and (most is None or most >= lanes)

    @cached_property
    def _is_whole(self) -> bool:
        """Tells whether no piece stands in two rows, by what is known."""
        return len(self.axes) == 1 or self.frame.facts.divides(self.lanes, self.axes[-1])

    def _items(self) -> Expr:
        """Pieces, or elements where there are none."""
        last, pieces = self.axes[-1], ceildiv(self.total, self.lanes)
        if self._is_whole:
            return pieces
        if self._may_be_across(self.lanes):
            return self.total - Expr.minimum(last // self.lanes, 1) * (self.total - pieces)
        whole = Expr.const(1) - Expr.minimum(last % self.lanes, 1)
        return self.total - (self.lanes - 1) * whole * (self.total // self.lanes)

    # ---- code -----------------------------------------------------------------------------------------------------

    def _narrow(self) -> ir.Value | bool:
        """Tells whether 32 bits are enough for what is divided. True where nothing is, for it makes no difference."""
        unproved = [size for size in self._divided() if not self._is_below(size)]
        if not unproved:
            return True
        conditions = [Relation.lt(size, NARROW) for size in unproved]
        self.frame.guard("divisions of 32 bits", "divisions of 64 bits", *conditions, of_size=True)
        limit = index_constant(NARROW)
        below = [arith.cmpi(arith.CmpIPredicate.ult, self.frame.size_of(size), limit) for size in unproved]
        return functools.reduce(arith.andi, below)

    def _ways(self) -> Iterator[tuple[ir.Value, bool]]:
        """The ways in which pieces may be worked on: whether one is taken, and whether all of a piece is in one row."""
        is_aligned = are_aligned(self.frame)
        if self._is_whole:
            yield is_aligned, True
            return
        last, number = self.axes[-1], self.lanes
        size, is_across = self.frame.size_of(last), self._may_be_across(number)
        others = f"{number} lanes, which may be in two rows" if is_across else "1 lane"
        self.frame.guard(f"{number} lanes", others, Relation.eq(last % number, 0))
        is_whole = is_multiple_of(size, number)
        if self._may_be_whole(number):
            yield arith.andi(is_aligned, is_whole), True
        if is_across:
            is_long = arith.cmpi(arith.CmpIPredicate.uge, size, index_constant(number))
            is_rest = arith.xori(is_whole, arith.constant(ir.IntegerType.get_signless(1), 1))
            yield arith.andi(is_aligned, arith.andi(is_long, is_rest)), False

    def _at(self, width: int, narrow: ir.Value | bool, in_one_row: bool = True) -> Callable[[ir.Value], None]:
        """The body for the element, or the piece, of a number."""
        # Where a piece is within one row, rows are of whole pieces, unless there is one row.
        whole = self.axes[-1:] if width > 1 and len(self.axes) > 1 and in_one_row else ()
        multiples = Multiples(width, self.frame.facts, whole)
        division = LaneMath(width, narrow, multiples, functools.partial(multiplier_in, self.frame))
        elements = Lanes.of(self.frame, LaneMath(width, False, multiples) if self.names & _SPREADING else division)
        place_of = self._place if in_one_row else self._place_across

        def item(number: ir.Value) -> None:
            linear = number if width == 1 else arith.muli(number, index_constant(width))
            with elements.scope():
                elements.place = place_of(elements, division, linear)
                self.body(elements, self._positions(elements.place), False)

        return item

    def _place(self, elements: Lanes, division: LaneMath, linear: ir.Value) -> Place:
        """The position of the elements from a row-major number on."""
        step = int(elements.width > 1)
        positions, leading = divided_position(Position(linear), self.axes, elements, division)
        if self.axes:
            division.multiples.note(linear, positions[-1].base)
            positions[-1], leading[-1] = Position(positions[-1].base, step), Position(linear, step)
        return Place(self.axes, tuple(positions[: len(self.axes)]), tuple(leading[: len(self.axes)]))

    def _place_across(self, elements: Lanes, division: LaneMath, linear: ir.Value) -> Place:
        """The positions of the lanes from a row-major number on, the last of which may be in the next row.

        The first lane's position is divided. The others follow: one that comes to the end of an axis begins it again,
        one further along the axis before. Rows have as many elements as there are lanes, so none is passed twice.
        """
        division.multiples.note(linear)
        positions, leading = divided_position(Position(linear), self.axes, elements, division)
        type_ = division.vector_type(ir.IndexType.get())
        ahead, one, none = vector.step(type_), *(vector.broadcast(type_, index_constant(n)) for n in (1, 0))
        for axis in reversed(range(1, len(self.axes))):
            size = elements.size_of(self.axes[axis])
            leading[axis] = division.add(leading[axis], Position(None, 0, ahead))
            at = division.add(positions[axis], Position(None, 0, ahead))
            is_over = division.compare(arith.CmpIPredicate.uge, at, size)
            again = arith.subi(division.as_lanes(at), vector.broadcast(type_, size))
            positions[axis] = Position(None, 0, arith.select(is_over, again, division.as_lanes(at)))
            ahead = arith.select(is_over, one, none)
        leading[-1] = Position(linear, 1)
        positions[0] = leading[0] = division.add(positions[0], Position(None, 0, ahead))
        return Place(self.axes, tuple(positions), tuple(leading))

    def _positions(self, place: Place) -> Positions:
        """Those along all axes of the domain."""
        wide = iter(place.positions)
        return tuple(Position(index_constant(0)) if d.constant == 1 else next(wide) for d in self.domain)


def _halves(number: int) -> Iterator[int]:
    """A power of two and its halves, above 1."""
    while number > 1:
        yield number
        number //= 2


def divided_position(
    rest: Position, axes: Dims, elements: Lanes, division: LaneMath
) -> tuple[list[Position], list[Position]]:
    """A row-major number over axes as a position along each, and as the offset over each and those before it."""
    positions, leading = list[Position](), list[Position]()
    for dim in reversed(axes[1:]):
        leading.insert(0, rest)
        rest, inner = division.divmod(rest, elements.size_of(dim))
        positions.insert(0, inner)
    return [rest, *positions], [rest, *leading]
