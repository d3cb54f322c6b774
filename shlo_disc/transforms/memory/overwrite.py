# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which inputs a kernel may overwrite with its results."""

from __future__ import annotations

from collections.abc import Mapping

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.op_sets import ELEMENTWISE
from shlo_disc.shape_dialect.regions import terminator_of
from shlo_disc.transforms.fusion.access import defining_op
from shlo_disc.transforms.fusion.products import EPILOGUE, PRODUCT, SUMS, readers_of


def may_overwrite(fusion: ir.OpView, argument: int, result: int, functions: Mapping[str, ir.OpView]) -> bool:
    """Whether the kernel of `fusion` may write a result where an argument of the same type is.

    It may if it only changes some elements of that argument, or if it reads it at the index that it writes.
    """
    block = fusion.regions[0].blocks[0]
    if ir.StringAttr(fusion.attributes["disc.kind"]).value == PRODUCT:
        return _may_overwrite_in_epilogue(block, argument, result, functions)
    value = block.arguments[argument]
    if value.type != terminator_of(block).operands[result].type:
        return False
    if "disc.updates" in fusion.attributes:
        updated = list(ir.DenseI64ArrayAttr(fusion.attributes["disc.updates"]))
        return updated[result] == argument and len(list(value.uses)) == 1
    if "disc.collapsed" in fusion.attributes:
        return True
    return ir.StringAttr(fusion.attributes["disc.kind"]).value == "loop" and _is_read_in_step(value)


def _may_overwrite_in_epilogue(block: ir.Block, argument: int, result: int, functions: Mapping[str, ir.OpView]) -> bool:
    """Whether only the epilogue that makes the result reads the argument, and may overwrite it.

    The sums of whole rows lie where one of the results goes, before anything else is read.
    """
    readers = list(readers_of(block.arguments[argument]))
    output = terminator_of(block).operands[result]
    if len(readers) != 1 or readers[0][0] != defining_op(output):
        return False
    call, position = readers[0]
    index = list(call.results).index(output)
    fusion = functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
    kind = ir.StringAttr(fusion.attributes["disc.kind"]).value
    holds_sums = (
        kind != EPILOGUE and SUMS in fusion.attributes and ir.IntegerAttr(fusion.attributes[SUMS]).value == index
    )
    return not holds_sums and may_overwrite(fusion, position, index, functions)


def _is_read_in_step(value: ir.Value) -> bool:
    """Everything that depends on `value` is elementwise and as large."""
    pending = [value]
    seen: set[ir.Operation] = set()
    while pending:
        for use in pending.pop().uses:
            user = use.owner.operation
            if user.name == "func.return" or user in seen:
                continue
            if user.name not in ELEMENTWISE or _shape(user.results[0]) != _shape(value):
                return False
            seen.add(user)
            pending.append(user.results[0])
    return True


def _shape(value: ir.Value) -> tuple[list[int], ir.Attribute | None]:
    tensor = ir.RankedTensorType(value.type)
    return tensor.shape, tensor.encoding
