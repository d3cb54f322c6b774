# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels for CPUs whose rows have a few columns: the lanes of a vector are rows, and columns come one by one.

A vector of a row's columns would be mostly empty, and combining its lanes takes longer than reading them. Here nothing
is combined across lanes: a reduction is as many operations on vectors as a row has columns, whatever its body is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Elements, Positions, uniform
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering.row_kernel import Body, Computed, RowKernel, Values
from shlo_disc.lowering.rows import RowAnalysis
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range, vectors
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.fusion import row_kernel_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, vector
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.ops.reducers import monoid_of
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation

MOST_COLUMNS = 16
"""Columns of a row at most; vectors of longer rows are full enough."""

FEW_COLUMNS = 8
"""Columns for which taking vectors apart pays alone; three quarters of the lanes at most where rows are written."""

COMPUTING = 24
"""Instructions for a vector from which on it makes no difference."""

MOST_INSTRUCTIONS = 2048
"""Instructions for one vector of rows, at most."""


def rows_in_lanes(frame: CpuFrame, analysis: RowAnalysis) -> bool | ir.Value:
    """Tells whether rows lie in lanes; a value, where that is decided at run time.

    Lanes are rows along the last axis of rows, of which there have to be some, unless combining lanes takes longest.
    """
    wide = _wide(analysis.rows)
    if not wide or not _have_few_columns(frame, analysis):
        return False
    if len(wide) < 2 or any(monoid_of(op.regions[0].blocks[0]) is None for op in _reduces(analysis)):
        return True
    least, most = frame.facts.range(wide[-1])
    some = frame.lanes // 2
    if least is not None and least >= some:
        return True
    if frame.is_long or (most is not None and most < some):
        return False
    frame.guard("rows in lanes", "rows one by one", Relation.ge(wide[-1], some))
    return arith.cmpi(arith.CmpIPredicate.uge, frame.size_of(wide[-1]), index_constant(some))


def _have_few_columns(frame: CpuFrame, analysis: RowAnalysis) -> bool:
    columns = product(analysis.columns).constant
    what = row_kernel_of(frame.fusion)
    if columns is None or not 1 < columns <= MOST_COLUMNS or what.bounded or what.begins:
        return False
    instructions = total_code_size(frame.fusion.entry_block.operations)
    if columns * instructions > MOST_INSTRUCTIONS:
        return False
    if instructions >= COMPUTING or any(monoid_of(op.regions[0].blocks[0]) is None for op in _reduces(analysis)):
        return True
    is_written = any(map(analysis.is_full, frame.outputs))
    return columns <= FEW_COLUMNS and (not is_written or 4 * columns <= 3 * frame.lanes)


def _reduces(analysis: RowAnalysis) -> list[ir.OpView]:
    return [op for ops in analysis.reduces.values() for op in ops]


def _wide(dims: Dims) -> list[Expr]:
    return [dim for dim in dims if dim.constant != 1]


def walk_rows_in_lanes(frame: CpuFrame, analysis: RowAnalysis) -> None:
    """Emit the work on the rows of the kernel's range."""
    elements, wide = frame.elements(frame.lanes), _wide(analysis.rows)

    def over(outer: Positions, begin: ir.Value, end: ir.Value) -> None:
        vectors(elements, outer, begin, end, False, body, frame.lanes)

    def body(elements: Elements, places: Positions) -> None:
        found = iter(places)
        zero = Position(index_constant(0))
        rows = tuple(zero if dim.constant == 1 else next(found) for dim in analysis.rows)
        RowsInLanes(frame, analysis, elements).at(rows)

    if len(wide) == 1:
        over((), frame.begin, frame.end)
        return
    length = arith.maxui(frame.size_of(wide[-1]), index_constant(1))

    def line(number: ir.Value) -> None:
        first = arith.muli(number, length)
        begin = arith.subi(arith.maxui(frame.begin, first), first)
        end = arith.subi(arith.minui(frame.end, arith.addi(first, length)), first)
        over(uniform(delinearize(number, tuple(wide[:-1]), frame.size_of)), begin, end)

    for_range(arith.divui(frame.begin, length), arith.ceildivui(frame.end, length), line)


class RowsInLanes(RowKernel):
    """The rows of one vector. What one walk has computed of a column, later ones find: there are no loops."""

    frame: CpuFrame
    elements: VectorElements

    def __init__(self, frame: CpuFrame, analysis: RowAnalysis, elements: Elements):
        super().__init__(frame, analysis, elements)
        sizes = [range(dim.constant or 1) for dim in analysis.columns]
        places = {size: Position(index_constant(size)) for size in range(max(map(len, sizes)))}
        self.columns = [tuple(places[i] for i in column) for column in itertools.product(*sizes)]

    def at(self, rows: Positions) -> None:
        """As `RowKernel.at`. Inputs whose rows lie side by side are read by whole vectors, all columns together."""
        self.rows = rows
        for value, buffer in zip(self.frame.inputs, self.frame.input_buffers, strict=True):
            if buffer not in self.frame.panels and self._is_dense(value):
                self.elements.cached[value] = self._reader(value, buffer)
        super().at(rows)

    def _is_dense(self, value: ir.Value) -> bool:
        """Tells whether the columns of the lanes' rows follow each other in memory, and all lanes are there."""
        *outer, row = (p for p, dim in zip(self.rows, self.analysis.rows, strict=True) if dim.constant != 1)
        if not row.is_linear or not all(p.is_uniform for p in outer) or self.elements.lane_mask() is not None:
            return False
        return _wide(dims_of(value)) == _wide(self.analysis.rows) + _wide(self.analysis.columns)

    def _first(self, value: ir.Value) -> ir.Value:
        """The place of the first of the lanes' elements in the buffer of a value whose rows are dense."""
        places = tuple(Position(p.base) for p in self.place(value, self.columns[0]))
        return self.elements.linear_offset(places, dims_of(value)).base

    def _reader(self, value: ir.Value, buffer: ir.Value) -> Callable[[Positions], ir.Value | None]:
        element, width, first = element_of(value.type), self.elements.width, self._first(value)
        read = [
            self.elements.load_vector(buffer, _places(first, number * width, value), element)
            for number in range(len(self.columns))
        ]
        columns = [from_memory(column, element) for column in taken_apart(read)]
        places = [self.place(value, column) for column in self.columns]
        wide = [axis for axis, dim in enumerate(dims_of(value)) if dim.constant != 1]

        def column_at(positions: Positions) -> ir.Value | None:
            asked = (
                found
                for found, place in zip(columns, places, strict=True)
                if all(positions[axis] == place[axis] for axis in wide)
            )
            return next(asked, None)

        return column_at

    def walk(self, carried: Values, body: Body, fold: Callable[[Values], Values] | None, in_order: bool) -> Values:
        """Column by column, in order."""
        for column in self.columns:
            carried = body(column, carried, None)
        return carried

    def across(self, combiner: Combiner, found: Values) -> Values:
        """Each lane has a row's."""
        return found

    def write_walk(self) -> None:
        """All that is written is computed before; the columns of an output are written together."""
        full = self.outputs(is_full=True)
        by_column = [self.compute(full, column) for column in self.columns]
        of_row = self.compute(self.outputs(is_full=False), ())
        for elements in zip(*by_column, strict=True) if full else ():
            if not self._store_together(elements):
                self.store(elements)
        self.store(of_row)

    def _store_together(self, computed: Sequence[Computed]) -> bool:
        """Write all columns of an output by whole vectors, if its rows are dense."""
        _, _, output, buffer = computed[0]
        if not self._is_dense(output):
            return False
        element, width, first = element_of(output.type), self.elements.width, self._first(output)
        columns = [to_memory(self.elements.splat(value), element) for value, *_ in computed]
        for number, values in enumerate(put_together(columns)):
            vector.store(values, buffer, _places(first, number * width, output))
        return True


def _places(first: ir.Value, distance: int, value: ir.Value) -> list[ir.Value]:
    """The indices of an element of a buffer, by its row-major place."""
    place = arith.addi(first, index_constant(distance)) if distance else first
    return [*[index_constant(0)] * (len(dims_of(value)) - 1), place]


def taken_apart(vectors: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of rows that lie one after the other in vectors, of which there are as many as columns.

    An even number of columns is two halves of them, of which each pair of vectors has the even and odd elements.
    """
    count, width = len(vectors), _width(vectors[0])
    if count == 1:
        return list(vectors)
    if count % 2 == 0:
        pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
        halves = [[vector.shuffle(a, b, range(odd, 2 * width, 2)) for a, b in pairs] for odd in (0, 1)]
        even, odd = map(taken_apart, halves)
        return [column for both in zip(even, odd, strict=True) for column in both]
    return [_picked(vectors, [row * count + number for row in range(width)]) for number in range(count)]


def put_together(columns: Sequence[ir.Value]) -> list[ir.Value]:
    """Vectors of rows that lie one after the other, from their columns: the inverse of `taken_apart`."""
    count, width = len(columns), _width(columns[0])
    if count == 1:
        return list(columns)
    if count % 2 == 0:
        pairs = zip(put_together(columns[::2]), put_together(columns[1::2]), strict=True)
        lanes = [lane // 2 + width * (lane % 2) for lane in range(2 * width)]
        return [vector.shuffle(a, b, half) for a, b in pairs for half in (lanes[:width], lanes[width:])]
    places = [[number * width + lane for lane in range(width)] for number in range(count)]
    return [_picked(columns, [place % count * width + place // count for place in line]) for line in places]


def _picked(vectors: Sequence[ir.Value], places: Sequence[int]) -> ir.Value:
    """The elements at some places of all lanes of several vectors."""
    width = len(places)
    found = vectors[0]
    for number, values in list(enumerate(vectors))[1:]:
        here = [divmod(place, width) for place in places]
        found = vector.shuffle(found, values, [
            width + place if owner == number else place if owner == 0 and number == 1 else lane
            for lane, (owner, place) in enumerate(here)
        ])  # fmt: skip
    return found


def _width(value: ir.Value) -> int:
    (width,) = ir.VectorType(value.type).shape
    return width
