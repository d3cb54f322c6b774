# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs: neighbouring columns that a thread works on at once, so that it moves up to 16 bytes by one instruction.

Elements are computed one by one. What is asked of a tensor at one column of a run will be asked at all of them, so its
elements are read together when the first of them is asked for, and results are written together.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.row_kernel import Computed
from shlo_disc.lowering.rows import RowAnalysis
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.shape_dialect.dialect.types import bytes_of, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import arith, ir, memref, vector
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.symbolic.facts import Relation

BYTES = 16
"""The most bytes that a thread moves by one instruction."""

WIDEST = 8
"""Columns of a run, at most."""

LONG = 64
"""Instructions for an element from which on memory waits for them: how it is read makes no difference."""


def width_of_runs(frame: GpuFrame, analysis: RowAnalysis) -> int:
    """The columns of a run where rows are divided into runs; 1 where they never are, or where it does not pay."""
    sizes = [bytes_of(element_type_of(v)) for v in _tensors(frame, analysis)]
    each = [op for op in frame.fusion.entry_block.operations if any(map(analysis.is_full, op.results))]
    if not sizes or total_code_size(each) >= LONG:
        return 1
    width = min(WIDEST, BYTES // max(sizes))
    is_divided = frame.facts.prove(Relation.eq(analysis.columns[-1] % width, 0)) if width > 1 else False
    return 1 if is_divided is False else width


def in_runs(frame: GpuFrame, analysis: RowAnalysis, width: int) -> ir.Value:
    """Tells whether rows are divided into runs, each of which lies in memory as a vector does; decided at run time."""
    zero = index_constant(0)
    found = arith.constant(ir.IntegerType.get_signless(1), 1)
    pointers = dict(zip(frame.tensors, frame.entry.arguments, strict=False))
    rests = [
        arith.remui(memref.extract_aligned_pointer_as_index(pointers[v]), index_constant(BYTES))
        for v in _tensors(frame, analysis)
    ]
    columns = analysis.columns[-1]
    if not frame.facts.divides(width, columns):
        frame.guard(f"{width} columns at a time", "a column at a time", Relation.eq(columns % width, 0))
        rests.append(arith.remui(frame.size_of(columns), index_constant(width)))
    for rest in rests:
        found = arith.andi(found, arith.cmpi(arith.CmpIPredicate.eq, rest, zero))
    return found


def _tensors(frame: GpuFrame, analysis: RowAnalysis) -> list[ir.Value]:
    """The tensors that may be read or written in runs, each of which may come as several arguments."""
    outputs = [v for v in frame.outputs if analysis.is_full(v)]
    return [v for v in (*frame.inputs, *outputs) if _has_columns(v, analysis)]


def _has_columns(value: ir.Value, analysis: RowAnalysis) -> bool:
    """Tells whether the columns lie side by side in a tensor."""
    return dims_of(value)[-1:] == analysis.columns[-1:]


class Runs:
    """The position of a thread: `places` are the columns of its run."""

    def __init__(self, frame: GpuFrame, analysis: RowAnalysis, width: int):
        self.frame, self.analysis, self.width = frame, analysis, width
        self.places: list[Positions] = []
        inputs = zip(frame.inputs, frame.input_buffers, strict=True)
        self.buffers = {v: buffer for v, buffer in inputs if width > 1 and _has_columns(v, analysis)}

    def stand(self, rows: Positions, first: ir.Value) -> None:
        """Go to the run that begins at a column of a row."""
        *outer, inner = uniform(delinearize(first, self.analysis.columns, self.frame.size_of))
        more = [Position(arith.addi(inner.base, index_constant(i))) for i in range(1, self.width)]
        self.places = [(*outer, place) for place in (inner, *more)]
        sizes = (*self.analysis.rows, *self.analysis.columns[:-1])
        self._outer = list(zip((*rows, *outer), sizes, strict=True))
        self._block = ir.InsertionPoint.current.block
        self._read: dict[Hashable, ir.Value] = {}

    def read(self, value: ir.Value, positions: Positions) -> ir.Value | None:
        """The element of an input that stands in the run; None for one that stands elsewhere."""
        lane = next((i for i, place in enumerate(self.places) if place[-1] == positions[-1]), None)
        axes = [self._axis(p, d) for p, d in zip(positions[:-1], dims_of(value)[:-1], strict=True)]
        if lane is None or None in axes:
            return None
        key = (value, *axes)
        if key not in self._read:
            if ir.InsertionPoint.current.block != self._block:
                return None
            self._read[key] = self._load(value, [p.base for p in (*positions[:-1], self.places[0][-1])])
        return from_memory(vector.extract(self._read[key], [], [lane]), element_of(value.type))

    def _axis(self, position: Position, size: object) -> int | None:
        """The axis of rows or columns that an index lies along, -1 for one along a size of 1; None if along none."""
        if size == 1:
            return -1
        return next((i for i, (p, d) in enumerate(self._outer) if p == position and d == size), None)

    def _load(self, value: ir.Value, indices: list[ir.Value]) -> ir.Value:
        type_ = ir.VectorType.get([self.width], element_of(value.type).memory())
        return vector.load(type_, self.buffers[value], indices, alignment=self._bytes(value))

    def write(self, columns: Sequence[Sequence[Computed]]) -> None:
        """Write results, of which there are several at each column."""
        for same in zip(*columns, strict=True):
            _, place, output, buffer = same[0]
            if self.width == 1 or not _has_columns(output, self.analysis):
                for value, place, *_ in same:
                    memref.store(to_memory(value, element_of(output.type)), buffer, [p.base for p in place])
                continue
            values = [to_memory(value, element_of(output.type)) for value, *_ in same]
            run = vector.from_elements(ir.VectorType.get([self.width], values[0].type), values)
            vector.store(run, buffer, [p.base for p in place], alignment=self._bytes(output))

    def _bytes(self, value: ir.Value) -> int:
        return self.width * bytes_of(element_type_of(value))
