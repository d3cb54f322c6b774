# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that kernels may read from the panels of a packed form, checked call by call."""

from __future__ import annotations

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import kind_of
from shlo_disc.shape_dialect.dialect.names import PANELS
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks

_LOOKUPS = ("stablehlo.gather", "stablehlo.dynamic_gather", "stablehlo.dynamic_slice")


def verify_panels(module: ir.Module, entry: ir.Block) -> None:
    """Check the calls of a planned module whose entry function has the block `entry`.

    Raises CompilerError unless such an operand is an argument or constant of the program, a matrix of floats with
    known sizes, which a kernel of loops, rows or sums looks up, and reads in no other way.
    """
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    for op in (op.operation for block in all_blocks(entry) for op in block.operations):
        if PANELS not in op.attributes:
            continue
        callee = functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
        for number in ir.DenseI64ArrayAttr(op.attributes[PANELS]):
            wrong = _wrong(op.operands[number], callee, number, entry)
            if wrong:
                raise CompilerError(f"plan: operand {number} of a call of @{callee.name.value} {wrong}")


def _wrong(value: ir.Value, callee: func.FuncOp, number: int, entry: ir.Block) -> str:
    """The reason why an operand has no packed form, or the callee no way to read one; empty if there is none."""
    owner = value.owner
    is_fixed = owner == entry if isinstance(owner, ir.Block) else owner.operation.name == "stablehlo.constant"
    if not is_fixed:
        return "is read from panels, and neither an argument nor a constant"
    inside = callee.entry_block.arguments[number]
    type_ = ir.RankedTensorType(value.type)
    is_matrix = type_.rank == 2 and type_.has_static_shape and str(type_.element_type) in ("bf16", "f16", "f32", "f64")
    if not is_matrix or inside.type != value.type:
        return "is read from panels, and no matrix of floats with known sizes"
    if kind_of(callee) not in ("loop", "reduce", "row_reduce"):
        return f"is read from panels by a kernel of kind {kind_of(callee)}"
    if any(use.owner.operation.name not in _LOOKUPS or use.operand_number != 0 for use in inside.uses):
        return "is read from panels, and not only looked up"
    return ""


__all__ = ["verify_panels"]
