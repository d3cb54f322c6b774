# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Epilogues of products: loops that read a tile of sums where the product has it, and write what becomes of it.

The work items are rows of the result; the runtime says where the sums are and which columns they cover.
"""

from __future__ import annotations

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import element_of
from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.kernels import delinearize, op_cost
from shlo_disc.lowering.loop_kernel import write_outputs
from shlo_disc.lowering.positions import Position
from shlo_disc.lowering_cpu.emitters.frame import CpuFrame
from shlo_disc.lowering_cpu.emitters.loops import for_range, over_lanes
from shlo_disc.lowering_cpu.micro_kernels.gemm_kernel import tile_of
from shlo_disc.shape_dialect.dialect.fusion import Epilogue, fusion_of
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, memref
from shlo_disc.shape_dialect.symbolic.expr import Expr, ExprLike, Symbol

TILE_SIZES = tuple(Expr.of_atom(Symbol(f"%{name}")) for name in ("sums_step", "sums_column", "sums_past"))
"""Sizes of a tile that the runtime passes: elements between its rows, its first column and the one past its last.

No symbol of a program has such a name."""


def build_epilogue(frame: CpuFrame) -> tuple[Expr, ExprLike]:
    """Emit the body; returns the number of work items and the cost of one."""
    what = fusion_of(frame.fusion)
    if not isinstance(what, Epilogue):
        raise CompilerError(f"lower: a fusion of kind {what.kind} is no epilogue")
    sums, length = frame.inputs[what.sums], what.row
    domain = dims_of(frame.outputs[0])
    step, first, past = map(frame.size_of, TILE_SIZES)
    columns = tile_of(element_of(sums.type).name, frame.options, frame.options.tile_registers).columns
    elements = frame.elements(min(frame.width(), columns))
    tile = _tile_view(frame, sums, step)
    divisible = columns % elements.width == 0 and frame.is_whole(elements.width, length)

    def row(linear: ir.Value) -> None:
        local = Position(arith.subi(linear, frame.begin))
        outer = delinearize(linear, domain[:-1], frame.size_of)
        start = arith.muli(linear, frame.size_of(length)) if len(domain) == 1 else None

        def lanes(column: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            place = Position(arith.subi(column.base, first), column.step)
            dims = (domain[0], length)
            elements.cached[sums] = lambda _: elements.load(tile, (local, place), element_of(sums.type), dims)
            last = column if start is None else Position(arith.addi(start, column.base), column.step)
            positions: Positions = (*map(Position, outer), last)
            write_outputs(frame, elements, positions, domain, False)
            return carried

        with elements.scope():
            over_lanes(elements, first, past, divisible, [], lanes)

    for_range(frame.begin, frame.end, row)
    cost = max(1, sum(op_cost(op) for op in frame.fusion.entry_block.operations))
    return product(domain) // length, cost * length


def _tile_view(frame: CpuFrame, sums: ir.Value, step: ir.Value) -> ir.Value:
    """The sums as rows that are `step` elements apart."""
    element = element_of(sums.type).memory()
    layout = ir.StridedLayoutAttr.get(0, [DYNAMIC, 1])
    type_ = ir.MemRefType.get([DYNAMIC, DYNAMIC], element, layout=layout)
    buffer = frame.input_buffers[frame.inputs.index(sums)]
    return memref.ReinterpretCastOp(type_, buffer, [], [step, step], [step], [0], [DYNAMIC] * 2, [DYNAMIC, 1]).result
