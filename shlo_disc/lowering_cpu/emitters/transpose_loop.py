# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that read a value transposed, by tiles of as many rows and columns as a vector has lanes.

Vectors of the value along its own last axis are the rows of a tile, which is transposed in registers, by exchanges of
ever larger blocks (Eklundh, 1972). Lines of memory are read and written whole, however far apart they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Elements, Positions, uniform
from shlo_disc.lowering.frame import OneElement
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.loop_kernel import write_outputs
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.transposes import last_axis, transposed
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import either, first_lanes, for_range, vectors
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers

_LINE = 64


def build_transposing_loop(frame: CpuFrame) -> tuple[Expr, Expr] | None:
    """Emit the body of a loop with transposes; returns the number of work items and the cost of one.

    None, and nothing emitted, where there is none, or tiles are known to be mostly empty.
    """
    domain = dims_of(frame.outputs[0])
    transposes = transposed(frame.outputs, domain)
    lanes = frame.lanes
    if not transposes or lanes < 2:
        return None
    longest = frame.facts.range(domain[last_axis(transposes[0])])[1]
    if longest is not None and longest < _least(lanes):
        return None
    return _TransposeLoop(frame, domain, transposes, lanes).emit()


def _least(lanes: int) -> int:
    """Rows of a tile from which on it is faster than to gather them."""
    return max(2, lanes // 4)


class _TransposeLoop:
    """The loop of one kernel. Each work item is a strip of tiles: `lanes` rows of `axis`, and all of the last axis."""

    def __init__(self, frame: CpuFrame, domain: Dims, transposes: Sequence[ir.OpView], lanes: int):
        self.frame = frame
        self.domain = domain
        self.transposes = transposes
        self.lanes = lanes
        self.axis, self.last = last_axis(transposes[0]), len(domain) - 1
        self.rows, self.columns = frame.size_of(domain[self.axis]), frame.size_of(domain[-1])
        self.elements = frame.elements(lanes)

    def emit(self) -> tuple[Expr, Expr]:
        """Returns the number of strips, and the cost of one."""
        memory = [element_of(op.results[0].type).memory() for op in self.transposes]
        shapes = [ir.MemRefType.get([self.lanes, self.lanes], type_) for type_ in memory]
        self.tiles = [memref.alloca(shape, [], [], alignment=_LINE) for shape in shapes]
        streams = self.frame.streams(self.domain) if self._fills_lines() else None
        grid = tuple(ceildiv(d, self.lanes) if a == self.axis else d for a, d in enumerate(self.domain[:-1]))

        def strip(number: ir.Value) -> None:
            corner = delinearize(number, grid, self.frame.size_of)
            corner[self.axis] = arith.muli(corner[self.axis], index_constant(self.lanes))
            left = arith.minui(arith.subi(self.rows, corner[self.axis]), index_constant(self.lanes))
            either(streams, lambda streaming: self._strip(corner, left, streaming))

        for_range(self.frame.begin, self.frame.end, strip)
        cost = max(1, sum(op_cost(op) for op in self.frame.fusion.entry_block.operations))
        height = Expr.minimum(self.domain[self.axis], self.lanes)
        return product(grid), self.domain[-1] * height * cost

    def _fills_lines(self) -> bool:
        return all(self.lanes * element_of(v.type).width // 8 >= _LINE for v in self.frame.outputs)

    def _strip(self, corner: Sequence[ir.Value], rows: ir.Value, streaming: bool) -> None:
        """`rows` rows from a corner on."""
        height = self.frame.facts.range(self.domain[self.axis])[0]
        least = _least(self.lanes)
        if self.elements.has_one_body or (height is not None and height >= least):
            self._tiles(corner, rows, streaming)
            return
        size = self.domain[self.axis]
        self.frame.guard("tiles", "single elements", Relation.ge(size, least), of_size=True)
        is_high = arith.cmpi(arith.CmpIPredicate.uge, self.rows, index_constant(least))
        either(is_high, lambda high: (self._tiles if high else self._gathered)(corner, rows, streaming))

    def _gathered(self, corner: Sequence[ir.Value], rows: ir.Value, streaming: bool) -> None:
        """Rows without a tile."""

        def body(elements: Elements, positions: Positions) -> None:
            self._body(streaming)(elements, positions, False)

        def row(number: ir.Value) -> None:
            with self.elements.scope():
                outer = self._outer(corner, number)
                vectors(self.elements, outer, index_constant(0), self.columns, False, body, self.lanes)

        for_range(index_constant(0), rows, row)

    def _body(self, streaming: bool) -> OneElement:
        def body(elements: Elements, positions: Positions, _: bool) -> None:
            write_outputs(self.frame, elements, positions, self.domain, streaming)

        return body

    def _outer(self, corner: Sequence[ir.Value], row: ir.Value) -> Positions:
        """All positions but the last, in a row of a tile."""
        places = list(corner)
        places[self.axis] = arith.addi(corner[self.axis], row)
        return uniform(places)

    # ---- tiles ------------------------------------------------------------------------------------------------------

    def _tiles(self, corner: Sequence[ir.Value], rows: ir.Value, streaming: bool) -> None:
        """The tiles of a strip, the last of them masked."""
        lanes = index_constant(self.lanes)
        begin = index_constant(0)
        if self.elements.has_one_body:
            body = self._tile_of(corner, rows, False)
            for_range(begin, self.columns, lambda c: body(c, arith.minui(arith.subi(self.columns, c), lanes)), lanes)
            return
        rest = arith.remui(self.columns, lanes)
        end = arith.subi(self.columns, rest)
        whole = self._tile_of(corner, rows, streaming)
        for_range(begin, end, lambda column: whole(column, None), lanes)
        if self.frame.is_whole(self.lanes, self.domain[-1]):
            return
        choice = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ugt, rest, index_constant(0)), [])
        with ir.InsertionPoint(choice.then_block):
            self._tile_of(corner, rows, False)(end, rest)
            scf.yield_([])

    def _tile_of(
        self, corner: Sequence[ir.Value], rows: ir.Value, streaming: bool
    ) -> Callable[[ir.Value, ir.Value | None], None]:
        """`body(column, columns)`: the tile from a column on, of all lanes or of fewer columns."""

        def tile(column: ir.Value, columns: ir.Value | None) -> None:
            count = index_constant(self.lanes) if columns is None else columns
            is_high = arith.cmpi(arith.CmpIPredicate.eq, rows, index_constant(self.lanes))
            either(is_high, lambda high: self._keep(corner, column, count, None if high else rows))
            for buffer in self.tiles:
                self._transpose(buffer)
            mask = None if columns is None else first_lanes(self.lanes, columns)
            for_range(index_constant(0), rows, lambda row: self._write(corner, column, row, mask, streaming))

        return tile

    def _keep(self, corner: Sequence[ir.Value], column: ir.Value, columns: ir.Value, rows: ir.Value | None) -> None:
        """Each transposed value, a vector along its own last axis for each column; `rows`: the lanes, if not all."""
        mask = None if rows is None else first_lanes(self.lanes, rows)

        def keep(number: ir.Value) -> None:
            places = uniform([*corner, arith.addi(column, number)])
            places = (*places[: self.axis], Position(corner[self.axis], 1), *places[self.axis + 1 :])
            with self.elements.scope(), self.elements.valid(mask=mask):
                for op, buffer in zip(self.transposes, self.tiles, strict=True):
                    permutation = list(integers(op.attributes["permutation"]))
                    there = tuple(places[permutation.index(a)] for a in range(len(places)))
                    value = self.elements.splat(self.elements.at(op.operands[0], there))
                    kept = to_memory(value, element_of(op.results[0].type))
                    vector.store(kept, buffer, [number, index_constant(0)])

        for_range(index_constant(0), columns, keep)

    def _transpose(self, buffer: ir.Value) -> None:
        """Exchange the rows and columns of a tile: those whose numbers differ in one bit, bit by bit."""
        lanes = self.lanes
        type_ = ir.VectorType.get([lanes], ir.MemRefType(buffer.type).element_type)
        zero = index_constant(0)
        rows = [vector.load(type_, buffer, [index_constant(n), zero]) for n in range(lanes)]
        bit = lanes // 2
        while bit:
            upper = [lane if not lane & bit else lanes + lane - bit for lane in range(lanes)]
            lower = [lanes + lane if lane & bit else lane + bit for lane in range(lanes)]
            for n in range(lanes):
                if not n & bit:
                    a, b = rows[n], rows[n + bit]
                    rows[n], rows[n + bit] = vector.shuffle(a, b, upper), vector.shuffle(a, b, lower)
            bit //= 2
        for n, row in enumerate(rows):
            vector.store(row, buffer, [index_constant(n), zero])

    def _write(
        self, corner: Sequence[ir.Value], column: ir.Value, row: ir.Value, mask: ir.Value | None, streaming: bool
    ) -> None:
        """A vector of each result, in a row of the tile."""
        here = (*self._outer(corner, row), Position(column, 1))
        elements = self.elements
        with elements.scope(), elements.valid(mask=mask):
            for op, buffer in zip(self.transposes, self.tiles, strict=True):
                elements.cached[op.results[0]] = self._reader(op, buffer, here, row)
            self._body(streaming)(elements, here, streaming)
            for op in self.transposes:
                del elements.cached[op.results[0]]

    def _reader(
        self, op: ir.OpView, buffer: ir.Value, here: Positions, row: ir.Value
    ) -> Callable[[Positions], ir.Value | None]:
        """Reads a row of a tile; None for elements that stand elsewhere."""

        def read(positions: Positions) -> ir.Value | None:
            if positions != here:
                return None
            element = element_of(op.results[0].type)
            type_ = ir.VectorType.get([self.lanes], element.memory())
            return from_memory(vector.load(type_, buffer, [row, index_constant(0)]), element)

        return read


__all__ = ["build_transposing_loop"]
