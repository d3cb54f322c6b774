# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that read a value transposed, by tiles in the memory of the block.

Neighbouring threads take neighbouring elements of memory both where the value is read and where results are written:
a block computes a square tile of the value along its own last axis, keeps it, and goes on along the results' last axis.
Rows of a tile are kept one element longer than they are, so that those of a column lie in different banks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.frame import Frame, OneElement
from shlo_disc.lowering.multiples import Multiples
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.transposes import last_axis
from shlo_disc.lowering_gpu.grid import THREADS, each_block, thread
from shlo_disc.lowering_gpu.lane_math import LaneMath, multiplier_in
from shlo_disc.lowering_gpu.lanes import Lanes
from shlo_disc.shape_dialect.dialect.types import Dims, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers

TILE = 32
"""Rows and columns of a tile."""

LEAST = TILE // 2
"""Axes that are shorter fill too little of a tile."""

_ROWS = THREADS // TILE
"""Rows that the threads of a block work on together."""


@dataclass
class TransposeLoop:
    """The loop of one kernel over a domain. `shared`: an array, by its length and type, in the memory of the block."""

    frame: Frame
    domain: Dims
    body: OneElement
    transposes: Sequence[ir.OpView]
    narrow: ir.Value | bool
    shared: Callable[[int, ir.Type], ir.Value]

    def __post_init__(self) -> None:
        self.axis, self.last = last_axis(self.transposes[0]), len(self.domain) - 1
        self.sides = (self.domain[self.axis], self.domain[self.last])

    def is_tiled(self) -> ir.Value | bool:
        """Tells whether the sides of tiles are long enough for them, which is known or found at run time."""
        facts = self.frame.facts
        bounds = [facts.range(size) for size in self.sides]
        if any(high is not None and high < LEAST for _, high in bounds):
            return False
        unproved = [s for s, (low, _) in zip(self.sides, bounds, strict=True) if low is None or low < LEAST]
        if not unproved:
            return True
        self.frame.guard("tiles", "single elements", *(Relation.ge(size, LEAST) for size in unproved), of_size=True)
        least = index_constant(LEAST)
        are_long = [arith.cmpi(arith.CmpIPredicate.uge, self.frame.size_of(size), least) for size in unproved]
        return functools.reduce(arith.andi, are_long)

    @property
    def chosen(self) -> Expr:
        """1 where the sides are long enough, else 0."""
        return Expr.minimum(Expr.minimum(*self.sides) // LEAST, 1)

    @cached_property
    def buffers(self) -> list[ir.Value]:
        """The buffers of the tiles."""
        elements = [element_of(op.results[0].type) for op in self.transposes]
        return [self.shared(TILE * (TILE + 1), element.memory()) for element in elements]

    @cached_property
    def grid(self) -> Dims:
        """The number of tiles along each axis."""
        return tuple(ceildiv(d, TILE) if a in (self.axis, self.last) else d for a, d in enumerate(self.domain))

    def emit(self) -> Expr:
        """Returns how many blocks have work."""
        tiles, _ = product(self.grid), self.buffers
        each_block(self.frame.size_of(tiles), self._tile)
        return tiles

    def _tile(self, number: ir.Value) -> None:
        multiplier = functools.partial(multiplier_in, self.frame)
        math = LaneMath(1, self.narrow, Multiples(1, self.frame.facts), multiplier)
        corner = self._corner(math, number)
        self._each_row(lambda row, column: self._keep(math, corner, row, column))
        gpu.barrier()
        self._each_row(lambda row, column: self._write(math, corner, row, column))
        gpu.barrier()

    def _corner(self, math: LaneMath, number: ir.Value) -> list[ir.Value]:
        """The position of the first element of a tile."""
        rest, places = Position(number), list[ir.Value]()
        for axis in reversed(range(len(self.domain))):
            place = rest
            if axis:
                rest, place = math.divmod(rest, self.frame.size_of(self.grid[axis]))
            is_tiled = axis in (self.axis, self.last)
            places.insert(0, arith.muli(place.base, index_constant(TILE)) if is_tiled else place.base)
        return places

    @staticmethod
    def _each_row(body: Callable[[ir.Value, ir.Value], None]) -> None:
        """`body(row, column)` for this thread's places in a tile, neighbouring threads in neighbouring columns."""
        width = index_constant(TILE)
        row, column = arith.divui(thread(), width), arith.remui(thread(), width)
        loop = scf.ForOp(index_constant(0), width, index_constant(_ROWS), [])
        with ir.InsertionPoint(loop.body):
            body(arith.addi(loop.induction_variable, row), column)
            scf.yield_([])

    def _keep(self, math: LaneMath, corner: Sequence[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """One element of each transposed value, a row along its last axis. Behind the edge, that at the edge."""
        places = list(corner)
        for axis, inside in ((self.axis, column), (self.last, row)):
            end = arith.subi(self.frame.size_of(self.domain[axis]), index_constant(1))
            places[axis] = arith.minui(arith.addi(corner[axis], inside), end)
        elements = Lanes.of(self.frame, math)
        for op, buffer in zip(self.transposes, self.buffers, strict=True):
            permutation = list(integers(op.attributes["permutation"]))
            there = tuple(Position(places[permutation.index(a)]) for a in range(len(places)))
            value = to_memory(elements.at(op.operands[0], there), element_of(op.results[0].type))
            memref.store(value, buffer, [_place(row, column)])

    def _write(self, math: LaneMath, corner: Sequence[ir.Value], row: ir.Value, column: ir.Value) -> None:
        """One element of each result, a row along the last axis, where there is one."""
        places = list(corner)
        for axis, inside in ((self.axis, row), (self.last, column)):
            places[axis] = arith.addi(corner[axis], inside)
        ends = [
            arith.cmpi(arith.CmpIPredicate.ult, places[axis], self.frame.size_of(self.domain[axis]))
            for axis in (self.axis, self.last)
        ]
        choice = scf.IfOp(arith.andi(*ends), [])
        with ir.InsertionPoint(choice.then_block):
            elements, positions = Lanes.of(self.frame, math), tuple(map(Position, places))
            for op, buffer in zip(self.transposes, self.buffers, strict=True):
                elements.cached[op.results[0]] = _kept(op, buffer, positions, _place(column, row))
            self.body(elements, positions, False)
            scf.yield_([])


def _place(row: ir.Value, column: ir.Value) -> ir.Value:
    return arith.addi(arith.muli(row, index_constant(TILE + 1)), column)


def _kept(op: ir.OpView, buffer: ir.Value, here: Positions, place: ir.Value) -> Callable[[Positions], ir.Value | None]:
    """The element of a transpose in its tile; None for one that stands elsewhere."""

    def read(positions: Positions) -> ir.Value | None:
        if positions != here:
            return None
        return from_memory(memref.load(buffer, [place]), element_of(op.results[0].type))

    return read
