# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Column kernels for GPUs: reductions along axes that are not the last, such as the gradient of a bias.

A block has a tile of neighbouring columns, down which its threads walk in strands: side by side, or one behind the
other where the body of the reduction may depend on the order. What the strands have found is combined in their order,
in shared memory. Short columns have one strand. Where there are few tiles, several blocks have parts of a tile's rows
(`parts.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from shlo_disc.lowering.elements import Positions, uniform
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.long_sums import BLOCK, SHORT, LongSums, in_blocks
from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering.reduction import Accumulators, Combiner, start_values
from shlo_disc.lowering_gpu.block_loops import when
from shlo_disc.lowering_gpu.grid import THREADS, WARP, thread
from shlo_disc.lowering_gpu.index_math import below
from shlo_disc.lowering_gpu.kernel import GpuFrame
from shlo_disc.lowering_gpu.parts import Parts
from shlo_disc.lowering_gpu.policy import GPU_POLICY
from shlo_disc.lowering_gpu.shuffles import narrow, wide
from shlo_disc.lowering_gpu.teams import is_at_least, log2
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, gpu, ir, memref, scf
from shlo_disc.shape_dialect.ops.code_size import total_code_size
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.shape_dialect.utils.attributes import integers

LONGEST = 32
"""Instructions for rows that are read together, at most: longer ones would take too many registers."""


def _parts(op: ir.OpView) -> tuple[Dims, Dims, Dims]:
    """The sizes of the axes before those that a reduction goes along, of these, and of the axes behind them."""
    dims, reduced = dims_of(op.operands[0]), sorted(integers(op.attributes["dimensions"]))
    return dims[: reduced[0]], dims[reduced[0] : reduced[-1] + 1], dims[reduced[-1] + 1 :]


@dataclass(frozen=True)
class Tiles:
    """Tiles over `columns`, in each of `outer` blocks of `rows` rows."""

    outer: Expr
    rows: Expr
    columns: Expr

    def shift(self, frame: GpuFrame) -> ir.Value:
        """The width of a tile, as a power of two; noted as a choice of the kernel."""
        frame.guard("strands down a column", "a thread a column", Relation.gt(self.rows, SHORT))
        is_long = below(index_constant(SHORT), frame.size_of(self.rows))
        return arith.select(is_long, index_constant(log2(WARP)), index_constant(log2(THREADS)))

    def blocks(self) -> Expr:
        """The number of tiles, of which narrower ones are more."""
        is_long = is_at_least(self.rows, SHORT + 1)
        return self.outer * Expr.maximum(ceildiv(self.columns, THREADS), ceildiv(self.columns, WARP) * is_long)


class ColumnTiles:
    """The work of a block on one tile after another."""

    def __init__(self, frame: GpuFrame, op: ir.OpView, tiles: Tiles):
        self.frame, self.op, self.tiles, self.parts = frame, op, tiles, Parts(frame)
        self.elements = frame.elements()
        self.combiner = Combiner(op, self.elements.elementwise)
        self.shift = tiles.shift(frame)
        self.strands = arith.shrui(index_constant(THREADS), self.shift)
        self.strand = arith.shrui(thread(), self.shift)
        last = arith.subi(arith.shli(index_constant(1), self.shift), index_constant(1))
        self.lane = arith.andi(thread(), last)
        self.across = arith.shrui(arith.addi(frame.size_of(tiles.columns), last), self.shift)
        self.buffers: list[ir.Value] = []

    def total(self) -> ir.Value:
        """The number of tiles."""
        return arith.muli(self.frame.size_of(self.tiles.outer), self.across)

    def tile(self, number: ir.Value) -> None:
        """One tile."""
        before, _, behind = _parts(self.op)
        outer, first = index_constant(0), number
        if self.tiles.outer != 1:
            outer, first = arith.divui(number, self.across), arith.remui(number, self.across)
        column = arith.addi(arith.shli(first, self.shift), self.lane)
        is_there = below(column, self.frame.size_of(self.tiles.columns))
        with self.elements.scope():
            outer_at = uniform(delinearize(outer, before, self.frame.size_of))
            column_at = uniform(delinearize(column, behind, self.frame.size_of))
            operands = list(self.op.operands)
            inits = [self.elements.at(v, ()) for v in operands[len(operands) // 2 :]]
            starts, is_pending = start_values(self.combiner, inits, 1)
            self.buffers = [self.frame.shared_memory(THREADS, wide(v).type) for v in starts]
            own = self._walk(outer_at, column_at, is_there, starts)
            where = [place.base for place in (*outer_at, *column_at)]

            def store(total: Accumulators) -> None:
                self._store(self.combiner.combine(inits, total) if is_pending else total, (*outer_at, *column_at))

            def leave() -> None:
                self._of_strands(own, is_there, lambda total: self.parts.store(total, where))

            def gather() -> Accumulators:
                return self.parts.combined(starts, where, self.combiner.combine, self.strand, THREADS // WARP, is_there)

            own, goes_on = self.parts.of_all(own, leave, gather)
            if goes_on is None:
                self._of_strands(own, is_there, store)
            else:
                when(goes_on, lambda: self._of_strands(own, is_there, store))

    def _walk(self, outer: Positions, column: Positions, is_there: ir.Value, start: Accumulators) -> Accumulators:
        """The combined value of this thread's strand; nothing in a column that does not exist."""
        _, sizes, _ = _parts(self.op)
        sums = LongSums([self.combiner], may_be_long=not self._is_short())
        inputs = list(self.op.operands)[: len(self.op.results)]
        above, rows_here = self.parts.share(self.tiles.rows)
        begin, step, length = self._share(arith.select(is_there, rows_here, index_constant(0)))
        begin = arith.addi(above, begin)

        def rows(count: int, number: ir.Value, carried: Accumulators) -> Accumulators:
            """So many rows: all are read before the first is combined with what is carried."""
            with self.elements.scope():
                found = []
                for behind in range(count):
                    row = arith.addi(number, index_constant(behind)) if behind else number
                    linear = arith.addi(begin, arith.muli(row, step))
                    at = (*outer, *uniform(delinearize(linear, sizes, self.frame.size_of)), *column)
                    found.append([self.elements.at(v, at) for v in inputs])
                ((own, long),) = sums.split(carried)
                for values in found:
                    own = self.combiner.combine(own, values)
                return [*own, *long]

        fold, together = sums.fold if sums.any else None, self._together()
        first = index_constant(0)
        carried = sums.start([start])
        if together > 1:
            whole = arith.subi(length, arith.remui(length, index_constant(together)))
            body, blocks = partial(rows, together), max(1, BLOCK // together)
            carried, first = in_blocks(first, whole, together, carried, body, fold, blocks), whole
        (total,) = sums.finish(in_blocks(first, length, 1, carried, partial(rows, 1), fold))
        return total

    def _together(self) -> int:
        """The rows whose elements a thread waits for at once, fewer where the code of one is long."""
        size = total_code_size(self.frame.fusion.entry_block.operations)
        return next((count for count in (8, 4, 2) if count * size <= LONGEST), 1)

    def _share(self, rows: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The first row of this thread's strand, the step to its next, and how many it has."""
        rounded = arith.addi(rows, arith.subi(self.strands, index_constant(1)))
        in_block = arith.subi(index_constant(log2(THREADS)), self.shift)
        if self.combiner.monoid is not None:
            return self.strand, self.strands, arith.shrui(arith.subi(rounded, self.strand), in_block)
        length = arith.shrui(rounded, in_block)
        begin = arith.minui(arith.muli(self.strand, length), rows)
        return begin, index_constant(1), arith.minui(length, arith.subi(rows, begin))

    def _is_short(self) -> bool:
        """Tells whether a strand is known to have few rows, in tiles of any width."""
        shortest = THREADS // WARP
        return self.frame.facts.prove(Relation.le(self.tiles.rows, SHORT * shortest)) is True

    # ---- between the strands ----------------------------------------------------------------------------------------

    def _leave(self, own: Accumulators) -> None:
        words = [wide(v) for v in own]
        for value, buffer in zip(words, self.buffers, strict=True):
            memref.store(value, buffer, [thread()])

    def _of_strands(self, own: Accumulators, is_there: ir.Value, use: Callable[[Accumulators], None]) -> None:
        """`use` what the strands have found together, in the first strand of each column that exists."""
        self._leave(own)
        gpu.barrier()
        is_first = arith.cmpi(arith.CmpIPredicate.eq, self.strand, index_constant(0))
        with ir.InsertionPoint(scf.IfOp(arith.andi(is_first, is_there), []).then_block), self.elements.scope():
            use(self._combined(own))
            scf.yield_([])
        gpu.barrier()  # before strands leave again what they find

    def _combined(self, own: Accumulators) -> Accumulators:
        """The values that the strands have left, combined in their order."""

        def left(strand: ir.Value) -> Accumulators:
            place = [arith.addi(arith.shli(strand, self.shift), self.lane)]
            return [narrow(memref.load(b, place), v.type) for b, v in zip(self.buffers, own, strict=True)]

        loop = scf.ForOp(index_constant(1), self.strands, index_constant(1), own)
        with ir.InsertionPoint(loop.body):
            scf.yield_(self.combiner.combine(list(loop.inner_iter_args), left(loop.induction_variable)))
        return list(loop.results)

    def _store(self, total: Accumulators, at: Positions) -> None:
        """Write the results, which the reduction has made or which are computed from what it has made."""
        made = dict(zip(self.op.results, self.combiner.rounded(total), strict=True))

        def reader(value: ir.Value) -> Callable[[Positions], ir.Value | None]:
            return lambda positions: value if positions == at else None

        self.elements.cached = {v: reader(value) for v, value in made.items()}
        values = [self.elements.at(output, at) for output in self.frame.outputs]
        self.elements.cached = {}
        for output, value, buffer in zip(self.frame.outputs, values, self.frame.output_buffers, strict=True):
            self.frame.store(buffer, value, at, output, self.elements, False)


def build_columns(frame: GpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns how many blocks have work, and the cost of what one does."""
    (op,) = (op for op in frame.fusion.entry_block.operations if op.operation.name == "stablehlo.reduce")
    before, rows, behind = _parts(op)
    tiles = Tiles(product(before), product(rows), product(behind))
    kernel = ColumnTiles(frame, op, tiles)
    kernel.parts.guard(tiles.rows, GPU_POLICY.part_rows, tiles.outer * ceildiv(tiles.columns, WARP))
    kernel.parts.each(kernel.total(), kernel.tile)
    cost = sum(op_cost(inner) for inner in frame.fusion.entry_block.operations)
    return tiles.blocks() * kernel.parts.count, max(1, cost) * product(dims_of(op.operands[0]))
