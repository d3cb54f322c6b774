# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels for CPUs: the walks of a row, in vectors.

A value that a later walk needs again is kept in a stack buffer when the row fits it, else computed again; where the
facts cannot tell, the kernel holds both versions and a guard on the row's length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shlo_disc.lowering.element_types import element_of, from_memory, to_memory
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.long_sums import BLOCK, SHORT, LongSums
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering.row_kernel import Body, RowKernel, Values
from shlo_disc.lowering.rows import RowAnalysis, analyse_rows
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import either, for_range, over_lanes
from shlo_disc.lowering_cpu.emitters.short_rows import rows_in_lanes, walk_rows_in_lanes
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.fusion import row_kernel_of
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.ops.reducers import is_reorderable
from shlo_disc.shape_dialect.symbolic.expr import Expr, Symbol
from shlo_disc.shape_dialect.symbolic.facts import Relation

ROW_BUFFER = 8192
"""Elements that the stack buffer of a value has for one row at least."""

BOUND = Expr.of_atom(Symbol("%columns_that_count"))
"""The size that tells a kernel how many of the first columns count, where a causal mask hides the others.

No symbol of a program has such a name."""

FIRST = Expr.of_atom(Symbol("%first_column_that_counts"))
"""The size that tells a kernel the first of these columns, where they do not begin with the row."""

MAX_ROW_BYTES = 256 * 1024
"""All row buffers of a kernel together; a quarter of a core's L2 on the machines we know."""


def _worth_keeping(frame: CpuFrame, analysis: RowAnalysis) -> list[ir.Value]:
    """Values that a later walk needs again and that are more expensive to compute than to load."""
    kept: list[ir.Value] = []
    cost: dict[ir.Value, int] = {}
    left = MAX_ROW_BYTES
    for op in frame.fusion.entry_block.operations:
        if op.operation.name == "stablehlo.reduce" or len(op.results) != 1:
            continue
        value = op.results[0]
        cost[value] = op_cost(op) + sum(cost.get(v, 1) for v in op.operands)
        size = ROW_BUFFER * _row_bytes(value)
        needed_later = any(_walk_of(use.owner, analysis) > analysis.depth[value] for use in value.uses)
        is_worth = needed_later and cost[value] >= 3 and analysis.is_full(value)
        if is_worth and not element_of(value.type).is_bool and size <= left:
            left -= size
            cost[value] = 1
            kept.append(value)
    return kept


def _row_bytes(value: ir.Value) -> int:
    """Bytes of an element of a value in a row buffer, at most."""
    return max(4, element_of(value.type).width // 8)


def _walk_of(user: ir.OpView, analysis: RowAnalysis) -> int:
    """The walk in which an op reads its operands."""
    if user.operation.name == "func.return":
        return analysis.last
    if user.operation.name == "stablehlo.reduce":
        return analysis.depth[user.results[0]] - 1
    return analysis.depth[user.results[0]]


class VectorRows(RowKernel):
    """One version of the kernel, with or without row buffers: vectors along the last of a row's axes."""

    frame: CpuFrame
    elements: VectorElements

    def __init__(
        self,
        frame: CpuFrame,
        analysis: RowAnalysis,
        elements: VectorElements,
        buffers: dict[ir.Value, ir.Value],
        streams: ir.Value | None,
    ):
        super().__init__(frame, analysis, elements)
        self.streams = streams
        self.buffers = buffers
        self.stored: set[ir.Value] = set()

    # ---- walks ------------------------------------------------------------------------------------------------------

    def walk(self, carried: Values, body: Body, fold: Callable[[Values], Values] | None, in_order: bool) -> Values:
        """Over the columns, vectors along the last one."""
        *outer, inner = self.analysis.columns
        size_of = self.frame.size_of
        what = row_kernel_of(self.frame.fusion)

        def level(axis: int, above: Positions, values: Values) -> Values:
            if axis == len(outer):

                def at(position: Position, inside: Values, mask: ir.Value | None) -> Values:
                    self.columns = (*above, position)
                    inside = body(self.columns, inside, mask)
                    self._keep(self.columns)
                    return inside

                divisible = not what.bounded and self.frame.is_whole(self.elements.width, inner)
                begin = size_of(FIRST) if what.begins else index_constant(0)
                end = size_of(BOUND if what.bounded else inner)
                return over_lanes(self.elements, begin, end, divisible, values, at, fold)
            loop = scf.ForOp(index_constant(0), size_of(outer[axis]), index_constant(1), values)
            with ir.InsertionPoint(loop.body), self.elements.scope():
                inside = level(axis + 1, (*above, Position(loop.induction_variable)), list(loop.inner_iter_args))
                if fold is not None and outer[axis].constant != 1:
                    inside = fold(inside)
                scf.yield_(inside)
            return list(loop.results)

        results = level(0, (), carried)
        self.elements.cached.update({value: self._loader(value) for value in self.stored})
        self.stored.clear()
        return results

    def across(self, combiner: Combiner, found: Values) -> Values:
        """The combination of the lanes."""
        return combiner.across_lanes(found, self.elements.width) if self.elements.width > 1 else found

    def long_sums(self, combiners: Sequence[Combiner]) -> LongSums:
        """Rows may be long where their columns are more than a block of vectors, or lie along several axes."""
        *outer, inner = self.analysis.columns
        width = self.elements.width
        longest = self.frame.facts.range(inner)[1]
        if any(d.constant != 1 for d in outer):
            return LongSums(combiners)
        if longest is not None and longest <= SHORT * width:
            return LongSums(combiners, may_be_long=False)
        length = self.frame.size_of(inner)
        return LongSums(combiners, is_long=arith.cmpi(arith.CmpIPredicate.ugt, length, index_constant(BLOCK * width)))

    def write_walk(self) -> None:
        """Values of a row are computed before the row is written, and written after it."""
        full = self.outputs(is_full=True)

        def walk(streaming: bool) -> None:
            def body(columns: Positions, *_: object) -> Values:
                self.store(self.compute(full, columns), streaming)
                return []

            with self.elements.scope():
                self.walk([], body, None, False)

        of_row = self.compute(self.outputs(is_full=False), ())
        if full:
            either(self.streams, walk)
        self.store(of_row)

    def _is_here(self, value: ir.Value, positions: Positions) -> bool:
        """Tells whether `positions` is where the walk stands; sizes of 1 have one place only."""
        here = zip(positions, self.place(value, self.columns), dims_of(value), strict=True)
        return all(a == b for a, b, dim in here if dim.constant != 1)

    # ---- row buffers --------------------------------------------------------------------------------------------

    def _keep(self, columns: Positions) -> None:
        """Store what this walk computed and a later walk needs. Buffers are longer by a vector."""
        for value, buffer in self.buffers.items():
            if self.analysis.depth[value] != self.depth:
                continue
            known = self.elements.emitted(value, self.place(value, columns))
            if known is None:
                continue
            vector.store(to_memory(self.elements.splat(known), element_of(value.type)), buffer, [columns[-1].base])
            self.stored.add(value)

    def _loader(self, value: ir.Value) -> Callable[[Positions], ir.Value | None]:
        """Reads a row buffer at the walk's own place; None for an op that moves data and asks for another one."""
        buffer = self.buffers[value]
        element = element_of(value.type)

        def load(positions: Positions) -> ir.Value | None:
            if not self._is_here(value, positions):
                return None
            type_ = ir.VectorType.get([self.elements.width], element.memory())
            return from_memory(vector.load(type_, buffer, [positions[-1].base]), element)

        return load


def build_rows(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of rows and the cost of one."""
    analysis = analyse_rows(frame.fusion)
    in_lanes = rows_in_lanes(frame, analysis)
    if in_lanes is True:
        walk_rows_in_lanes(frame, analysis)
    else:
        walk = _rows_one_by_one(frame, analysis)
        condition = None if in_lanes is False else in_lanes
        either(condition, lambda are_there: walk_rows_in_lanes(frame, analysis) if are_there else walk())
    cost = sum(op_cost(op) for op in frame.fusion.entry_block.operations)
    return product(analysis.rows), max(1, cost) * product(analysis.columns)


def _rows_one_by_one(frame: CpuFrame, analysis: RowAnalysis) -> Callable[[], None]:
    """A function that emits the walks of one row after another, whose buffers it makes here."""
    streams = frame.streams((*analysis.rows, *analysis.columns))
    if not all(is_reorderable(op) for ops in analysis.reduces.values() for op in ops):
        return lambda: _versions(frame, analysis, 1, RowBuffers(), streams)
    buffers = _row_buffers(frame, analysis, frame.longest_width())
    length = analysis.columns[-1]
    return lambda: frame.by_length(length, lambda width: _versions(frame, analysis, width, buffers, streams))


@dataclass(frozen=True)
class RowBuffers:
    """The stack buffers of values that a later walk reads again, for rows of at most `longest` elements."""

    of: dict[ir.Value, ir.Value] = field(default_factory=dict)
    longest: int = 0


def _row_buffers(frame: CpuFrame, analysis: RowAnalysis, width: int) -> RowBuffers:
    """Buffers for as long rows as fit `MAX_ROW_BYTES` together: a kernel that keeps fewer values keeps longer rows."""
    wide = [d for d in analysis.columns if d.constant != 1]
    kept = _worth_keeping(frame, analysis) if wide == [analysis.columns[-1]] else []
    if not kept:
        return RowBuffers()
    longest = MAX_ROW_BYTES // sum(map(_row_bytes, kept))
    buffers = {}
    for value in kept:
        type_ = ir.MemRefType.get([longest + width], element_of(value.type).memory())
        buffers[value] = memref.AllocaOp(type_, [], [], alignment=64).result
    return RowBuffers(buffers, longest)


def _versions(
    frame: CpuFrame, analysis: RowAnalysis, width: int, buffers: RowBuffers, streams: ir.Value | None
) -> None:
    def rows(with_buffers: bool) -> None:
        kernel = VectorRows(frame, analysis, frame.elements(width), buffers.of if with_buffers else {}, streams)
        for_range(frame.begin, frame.end, kernel.row)

    if not buffers.of:
        rows(with_buffers=False)
        return
    length = analysis.columns[-1]
    longest = frame.facts.range(length)[1]
    is_short = width < frame.longest_width()
    if is_short or (longest is not None and longest <= buffers.longest):
        rows(with_buffers=True)
        return
    frame.guard("rows kept on the stack", "values of a row computed again", Relation.le(length, buffers.longest))
    fits = arith.cmpi(arith.CmpIPredicate.ule, frame.size_of(length), index_constant(buffers.longest))
    either(fits, rows)
