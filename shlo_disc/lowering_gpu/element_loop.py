# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over the elements of a kernel's results, spread over the threads of a grid.

A thread takes several elements side by side, which are one access of 16 bytes in the widest tensor. That needs a last
axis of a multiple of them, and pointers to multiples of 16 bytes; both are found out at run time where they are not
known. What is left over, be it all of the work, is done one element at a time.

An element's index along each axis is found by division: in 32 bits where there are fewer than 2^31 elements, by what
the facts or the sizes at run time say. Over one axis there is none: tensors are read where they are written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.frame import Frame, OneElement
from shlo_disc.lowering.index_rules import folds, windows
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_gpu.grid import THREADS, each_thread
from shlo_disc.lowering_gpu.lane_math import LaneMath, Multiples
from shlo_disc.lowering_gpu.lanes import ACCESS_BYTES, Lanes, Place
from shlo_disc.lowering_gpu.transpose_loop import TILE, TransposeLoop, transposed
from shlo_disc.mlir import arith, ir, memref, scf
from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.transforms.code_size import total_code_size

NARROW = 1 << 31
"""Positions in tensors of fewer elements are divided in 32 bits."""

LONGEST = 512
"""Instructions of a thread's lanes together, at most: longer ones would take too many registers."""

_FOLDS = folds.RULES.keys() | windows.RULES.keys()
"""Ops that take long for one element, which need all threads that there are."""

_RESHAPES = frozenset({"stablehlo.reshape", "stablehlo.dynamic_reshape"})
"""Ops that divide positions: within what they reshape."""

_SPREADING = frozenset({"stablehlo.pad", "stablehlo.dynamic_pad"}) | windows.RULES.keys()
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
        transposes = [] if self.names & _SPREADING else transposed(self.frame, self.domain)
        if not transposes:
            return self._elements(narrow)
        tiles = TransposeLoop(self.frame, self.domain, self.body, transposes, narrow, self.shared)
        is_tiled = tiles.is_tiled()
        if is_tiled is False:
            return self._elements(narrow)
        each = Expr.const(TILE * TILE // THREADS)
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
        """Pieces of several lanes, then single elements."""
        total = self.frame.size_of(self.total)
        if self.lanes == 1:
            each_thread(total, self._at(1, narrow))
            return self.total, Expr.const(1)
        lanes = index_constant(self.lanes)
        count = arith.select(self._has_pieces(), arith.divui(total, lanes), index_constant(0))
        each_thread(count, self._at(self.lanes, narrow))
        each_thread(total, self._at(1, narrow), arith.muli(count, lanes))
        return self._items(), Expr.const(self.lanes)

    # ---- how much there is ----------------------------------------------------------------------------------------

    def _divided(self) -> list[Expr]:
        """How many elements the tensors have whose positions are divided: the domain, and what is reshaped."""
        ops = self.frame.fusion.entry_block.operations
        reshaped = [product(dims_of(op.results[0])) for op in ops if op.operation.name in _RESHAPES]
        return list(dict.fromkeys([*([self.total] if self._is_divided else []), *reshaped]))

    @property
    def _is_divided(self) -> bool:
        """Whether a position in the domain is found by division."""
        return len(self.axes) > 1

    def _is_below(self, size: Expr) -> bool:
        most = self.frame.facts.range(size)[1]
        return most is not None and most < NARROW

    @cached_property
    def lanes(self) -> int:
        """The elements of a thread that stand side by side."""
        if not self.axes or self.names & _FOLDS:
            return 1
        last = self.axes[-1]
        along = [v for v in self.frame.tensors if last in dims_of(v)[-1:]] + self.frame.outputs
        lanes = ACCESS_BYTES // max(bytes_of(element_type_of(v)) for v in along)
        size = total_code_size(self.frame.fusion.entry_block.operations)
        most = self.frame.facts.range(self.total)[1]
        while lanes > 1 and (lanes * size > LONGEST or self._never(lanes) or (most is not None and most < lanes)):
            lanes //= 2
        return lanes

    def _never(self, lanes: int) -> bool:
        """Whether rows are known not to be of whole pieces."""
        last = self.axes[-1].constant
        return len(self.axes) > 1 and last is not None and last % lanes != 0

    @cached_property
    def _is_whole(self) -> bool:
        """Whether no piece stands in two rows, by what is known."""
        return len(self.axes) == 1 or self.frame.facts.divides(self.lanes, self.axes[-1])

    def _items(self) -> Expr:
        """Pieces, or elements where rows are not of whole pieces."""
        if self._is_whole:
            return ceildiv(self.total, self.lanes)
        whole = Expr.const(1) - Expr.minimum(self.axes[-1] % self.lanes, 1)
        return self.total - (self.lanes - 1) * whole * (self.total // self.lanes)

    # ---- code -----------------------------------------------------------------------------------------------------

    def _narrow(self) -> ir.Value | bool:
        """Whether 32 bits are enough for what is divided. True where nothing is, for it makes no difference."""
        unproved = [size for size in self._divided() if not self._is_below(size)]
        if not unproved:
            return True
        conditions = [Relation.lt(size, NARROW) for size in unproved]
        self.frame.guard("divisions of 32 bits", "divisions of 64 bits", *conditions, of_size=True)
        limit = index_constant(NARROW)
        below = [arith.cmpi(arith.CmpIPredicate.ult, self.frame.size_of(size), limit) for size in unproved]
        return functools.reduce(arith.andi, below)

    def _has_pieces(self) -> ir.Value:
        """Whether memory can be accessed by whole pieces."""
        wide = [b for b in (*self.frame.input_buffers, *self.frame.output_buffers) if ir.MemRefType(b.type).rank]
        places = [memref.ExtractAlignedPointerAsIndexOp(buffer).result for buffer in wide]
        is_whole = is_multiple_of(functools.reduce(arith.ori, places), ACCESS_BYTES)
        if self._is_whole:
            return is_whole
        last = self.axes[-1]
        self.frame.guard(f"{self.lanes} lanes", "1 lane", Relation.eq(last % self.lanes, 0))
        return arith.andi(is_whole, is_multiple_of(self.frame.size_of(last), self.lanes))

    def _at(self, width: int, narrow: ir.Value | bool) -> Callable[[ir.Value], None]:
        """The body for the element, or the piece, of a number."""
        # A piece is within one row, so rows are of whole pieces, unless there is one row.
        whole = self.axes[-1:] if width > 1 and len(self.axes) > 1 else ()
        multiples = Multiples(width, self.frame.facts, whole)
        division = LaneMath(width, narrow, multiples)
        elements = Lanes.of(self.frame, LaneMath(width, False, multiples) if self.names & _SPREADING else division)

        def item(number: ir.Value) -> None:
            linear = number if width == 1 else arith.muli(number, index_constant(width))
            with elements.scope():
                elements.place = self._place(elements, division, linear)
                self.body(elements, self._positions(elements.place), False)

        return item

    def _place(self, elements: Lanes, division: LaneMath, linear: ir.Value) -> Place:
        """Where the elements from a row-major number on stand."""
        step = int(elements.width > 1)
        positions, leading = divided_position(Position(linear), self.axes, elements, division)
        if self.axes:
            division.multiples.note(linear, positions[-1].base)
            positions[-1], leading[-1] = Position(positions[-1].base, step), Position(linear, step)
        return Place(self.axes, tuple(positions[: len(self.axes)]), tuple(leading[: len(self.axes)]))

    def _positions(self, place: Place) -> Positions:
        """Those along all axes of the domain."""
        wide = iter(place.positions)
        return tuple(Position(index_constant(0)) if d.constant == 1 else next(wide) for d in self.domain)


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


def is_multiple_of(value: ir.Value, number: int) -> ir.Value:
    rest = arith.andi(value, index_constant(number - 1))
    return arith.cmpi(arith.CmpIPredicate.eq, rest, index_constant(0))
