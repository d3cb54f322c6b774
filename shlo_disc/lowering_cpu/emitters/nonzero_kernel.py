# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compaction kernels: the positions of the true elements of a mask, in order.

One thread goes through the mask a vector at a time and stores the lanes that are true next to each other. How many
there are was counted before, so that the result has its true size; nothing is stored behind it in any case.
"""

from __future__ import annotations

from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import over_lanes
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import arith, ir, math, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr


def build_nonzero(frame: CpuFrame) -> tuple[Expr, Expr]:
    """Emit the body; returns one work item and its cost."""
    op = next(o for o in frame.fusion.entry_block.operations if o.operation.name == "disc.nonzero")
    (length,), (count,) = dims_of(op.operands[0]), dims_of(op.results[0])
    element = element_of(op.results[0].type)
    elements = frame.elements(frame.width())
    buffer, end = frame.output_buffers[0], frame.size_of(count)
    width = elements.width
    as_bits = ir.VectorType.get([1], ir.IntegerType.get_signless(width))

    def lanes(position: Position, carried: list[ir.Value], valid: ir.Value | None) -> list[ir.Value]:
        mask = elements.splat(elements.at(op.operands[0], (position,)))
        mask = mask if valid is None else arith.andi(mask, valid)
        bits = vector.extract(vector.bitcast(as_bits, mask), [], [0])
        (first,) = carried
        following = arith.addi(first, arith.index_cast(ir.IndexType.get(), math.ctpop(bits)))
        fits = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ule, following, end), [])
        with ir.InsertionPoint(fits.then_block):
            vector.compressstore(buffer, [first], mask, elements.position_value(position, element))
            scf.yield_([])
        return [following]

    item = scf.ForOp(frame.begin, frame.end, index_constant(1), [])
    with ir.InsertionPoint(item.body), elements.scope():
        divisible = frame.is_whole(width, length)
        over_lanes(elements, index_constant(0), frame.size_of(length), divisible, [index_constant(0)], lanes)
        scf.yield_([])
    return Expr.const(1), length
