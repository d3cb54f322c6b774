# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Top-k kernels: the first k elements of a sorted row without sorting it.

The best k so far are kept in order on the stack. A whole vector of elements is compared with the last of them, and only
where some lane belongs before it are the vector's elements inserted one by one: on most data, that is seldom.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import element_of, from_memory
from shlo_disc.lowering.kernels import delinearize
from shlo_disc.lowering.line_sort import Rows, sort_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range
from shlo_disc.lowering_cpu.emitters.sort_kernel import RowSort
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_top_k(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of rows and the cost of one."""
    op = sort_of(frame.fusion)
    *outer, length = dims_of(op.operands[0])
    count = dims_of(frame.outputs[0])[-1].constant or 0
    best = [memref.AllocaOp(ir.MemRefType.get([count], element_of(v.type).memory()), [], []).result for v in op.results]

    def row(linear: ir.Value) -> None:
        indices = delinearize(linear, tuple(outer), frame.size_of)
        _select(frame, op, [Position(i) for i in indices], frame.size_of(length), best, index_constant(count))
        for number, buffer in enumerate(frame.output_buffers):
            source = best[list(op.results).index(frame.maker(number).operands[0])]
            _write(source, buffer, indices, index_constant(count))

    for_range(frame.begin, frame.end, row)
    return product(outer), len(op.results) * length


def _write(source: ir.Value, buffer: ir.Value, row: list[ir.Value], count: ir.Value) -> None:
    for_range(index_constant(0), count, lambda i: memref.store(memref.load(source, [i]), buffer, [*row, i]))


def _select(
    frame: CpuFrame, op: ir.OpView, place: list[Position], length: ir.Value, best: Rows, count: ir.Value
) -> None:
    """The first `count` elements of the row at `place` go to `best`; the row has no fewer."""
    scalars, lanes = frame.elements(1), frame.elements(frame.width())
    sorter = RowSort(op, scalars, place, length)
    zero, last = index_constant(0), arith.subi(count, index_constant(1))

    def stored(i: ir.Value) -> list[ir.Value]:
        return sorter.element_at((*place, Position(i)))

    def fill(i: ir.Value) -> None:
        with scalars.scope():
            sorter.insert(best, zero, i, stored(i))

    def replace(i: ir.Value) -> None:
        with scalars.scope():
            new = stored(i)
            guard = scf.IfOp(sorter.is_before(new, sorter.load(best, last)), [])
            with ir.InsertionPoint(guard.then_block):
                sorter.insert(best, zero, last, new)
                scf.yield_([])

    for_range(zero, count, fill)
    step = index_constant(lanes.width)
    rest = arith.subi(length, count)
    main_end = arith.subi(length, arith.remui(rest, step))
    comparator = Combiner(op, lanes.elementwise)

    def vectors(i: ir.Value) -> None:
        with lanes.scope():
            new = [lanes.splat(lanes.at(v, (*place, Position(i, 1)))) for v in op.operands]
            bound = [from_memory(v, k) for v, k in zip(sorter.load(best, last), sorter.kinds, strict=True)]
            pairs = [v for pair in zip(new, map(lanes.splat, bound), strict=True) for v in pair]
            is_before = lanes.splat(comparator.combine(pairs, [], exact=True)[0])
            some = vector.reduction(ir.IntegerType.get_signless(1), vector.CombiningKind.OR, is_before)
            guard = scf.IfOp(some, [])
            with ir.InsertionPoint(guard.then_block):
                for_range(i, arith.addi(i, step), replace)
                scf.yield_([])

    if lanes.width > 1:
        for_range(count, main_end, vectors, step)
        for_range(main_end, length, replace)
    else:
        for_range(count, length, replace)
