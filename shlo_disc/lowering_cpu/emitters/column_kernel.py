# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Column kernels: reductions along all but the last axis, such as the gradient of a bias.

A work item is a block of neighbouring columns. It walks down the rows with one accumulator a column in registers, so
that every row is read in runs of whole cache lines.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import constant_like, element_of
from shlo_disc.lowering.index_rules.folds import nest
from shlo_disc.lowering.kernels import op_cost
from shlo_disc.lowering.long_sums import LongSums
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame, store
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, scf
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

CHEAP = 4
"""Cost of an element up to which a block is wide: all of its vectors are computed in the same loop."""


def build_columns(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns the number of blocks and the cost of one."""
    (output,) = frame.outputs
    op = frame.maker()
    cost = max(1, sum(op_cost(inner) for inner in frame.fusion.entry_block.operations))
    elements = frame.elements(frame.width())
    vectors = 8 if cost <= CHEAP else 2
    columns = dims_of(output)[0]
    length = vectors * elements.width

    def block(index: ir.Value) -> None:
        begin = arith.muli(index, index_constant(length))
        end = arith.minui(arith.addi(begin, index_constant(length)), frame.size_of(columns))
        is_whole = arith.cmpi(arith.CmpIPredicate.eq, arith.subi(end, begin), index_constant(length))
        choice = scf.IfOp(is_whole, [], has_else=True)
        with ir.InsertionPoint(choice.then_block), elements.scope():
            _whole_block(frame, elements, op, begin, vectors)
            scf.yield_([])
        with ir.InsertionPoint(choice.else_block), elements.scope():
            over_lanes(elements, begin, end, False, [], lambda place, *_: _vector(frame, elements, output, place))
            scf.yield_([])

    for_range(frame.begin, frame.end, block)
    return ceildiv(columns, length), cost * length * product(dims_of(op.operands[0])[:-1])


def _vector(frame: CpuFrame, elements: VectorElements, output: ir.Value, place: Position) -> list[ir.Value]:
    store(frame.output_buffers[0], elements.at(output, (place,)), (place,), element_of(output.type), elements)
    return []


def _whole_block(frame: CpuFrame, elements: VectorElements, op: ir.OpView, begin: ir.Value, vectors: int) -> None:
    source, init = op.operands
    combiners = [Combiner(op, elements.elementwise)] * vectors
    sums = LongSums(combiners)
    first = [elements.splat(elements.at(init, ()))]
    starts = [constant_like(first[0], 0.0)] if sums.any else first
    lanes = 1 if elements.width > 1 else 0
    places = [Position(arith.addi(begin, index_constant(i * elements.width)), lanes) for i in range(vectors)]

    def row(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        outer = tuple(Position(i) for i in indices)
        read = [elements.splat(elements.at(source, (*outer, place))) for place in places]
        blocks = zip(combiners, sums.split(carried), read, strict=True)
        return [v for combiner, (own, long), r in blocks for v in (*combiner.combine(own, [r]), *long)]

    sizes = [frame.size_of(d) for d in dims_of(source)[:-1]]
    carried = nest(elements, sizes, sums.start([starts] * vectors), row, sums.fold if sums.any else None)
    for place, total, combiner in zip(places, sums.finish(carried), combiners, strict=True):
        (value,) = combiner.rounded(combiner.combine(first, total) if sums.any else total)
        store(frame.output_buffers[0], value, (place,), element_of(op.results[0].type), elements)
