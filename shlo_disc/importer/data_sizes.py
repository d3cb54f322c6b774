# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces the hidden arguments of a traced function by sizes that are read from data."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.ops import BindOp, NonzeroOp, ShapeOp
from shlo_disc.shape_dialect.dialect.types import dims_attr, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.locations import source_line

from .entry_arguments import drop_arguments

NONZERO = "shlo_disc.nonzero"


def open_data_sizes(function: ir.OpView, hidden: Mapping[int, str]) -> None:
    """Turn every `custom_call @shlo_disc.nonzero` into a count, a `disc.bind` and a `disc.nonzero`, in place.

    `hidden` gives the positions of the hidden arguments and the symbols of their sizes. Raises UnsupportedError when
    one of them stands for two sizes.
    """
    if not hidden:
        return
    block = function.regions[0].blocks[0]
    symbols = {block.arguments[position]: Expr.symbol(name) for position, name in hidden.items()}
    calls: dict[ir.Value, ir.Value] = {}
    for op in list(block.operations):
        if is_target(op, NONZERO):
            _open(op, symbols, calls)
        elif is_target(op, "shape_assertion"):
            _forget_hidden(op, hidden)
    for argument, symbol in symbols.items():
        size = symbol if argument in calls else Expr.const(0)
        for use in list(argument.uses):
            _replace_size(use.owner, size)
    drop_arguments(function, hidden)


def is_target(op: ir.OpView, target: str) -> bool:
    """Tells whether an op is a custom call of `target`."""
    if op.operation.name != "stablehlo.custom_call":
        return False
    return ir.StringAttr(op.attributes["call_target_name"]).value == target


def _open(op: ir.OpView, symbols: Mapping[ir.Value, Expr], calls: dict[ir.Value, ir.Value]) -> None:
    mask, hidden = op.operands[0], op.operands[1]
    if hidden in calls and calls[hidden] != mask:
        reason = "two sizes that depend on data share one trace of jax.jit"
        advice = "call the inner function without jax.jit"
        raise UnsupportedError([Unsupported(f"custom_call @{NONZERO}", "", source_line(op.location), reason, advice)])
    with ir.InsertionPoint(op), op.location:
        if hidden not in calls:
            BindOp(_count(mask), dims_attr([symbols[hidden]]))
        result = tensor_type((symbols[hidden],), element_type_of(op.results[0]))
        new = NonzeroOp(mask, result=result)
    calls[hidden] = mask
    op.results[0].replace_all_uses_with(new.results[0])
    op.operation.erase()


def _count(mask: ir.Value) -> ir.Value:
    """The number of true elements."""
    integer = ir.IntegerType.get_signless(64)
    scalar = ir.RankedTensorType.get([], integer)
    tensor = ir.RankedTensorType(mask.type)
    wide = ir.RankedTensorType.get(tensor.shape, integer, tensor.encoding)
    numbers = ir.Operation.create("stablehlo.convert", results=[wide], operands=[mask]).results[0]
    value: dict[str, ir.Attribute] = {"value": ir.DenseElementsAttr.get_splat(scalar, ir.IntegerAttr.get(integer, 0))}
    zero = ir.Operation.create("stablehlo.constant", results=[scalar], attributes=value).results[0]
    axis: dict[str, ir.Attribute] = {"dimensions": ir.DenseI64ArrayAttr.get([0])}
    reduce = ir.Operation.create(
        "stablehlo.reduce", results=[scalar], operands=[numbers, zero], attributes=axis, regions=1
    )
    body = reduce.regions[0].blocks.append(scalar, scalar)
    with ir.InsertionPoint(body):
        total = ir.Operation.create("stablehlo.add", results=[scalar], operands=list(body.arguments)).results[0]
        ir.Operation.create("stablehlo.return", operands=[total])
    return reduce.results[0]


def _replace_size(op: ir.OpView | ir.Operation, size: Expr) -> None:
    """`get_dimension_size` of a hidden argument is `size`."""
    if op.operation.name != "stablehlo.get_dimension_size":
        raise ValueError(f"{op.operation.name} reads an argument that is there for its size only")
    with ir.InsertionPoint(op), op.location:
        shape = ShapeOp(dims_attr([size]), result=op.results[0].type)
    op.results[0].replace_all_uses_with(shape.results[0])
    op.operation.erase()


def _forget_hidden(op: ir.OpView, hidden: Mapping[int, str]) -> None:
    """Take the hidden arguments out of the message of a shape assertion, which may be about nothing else."""
    message = ir.StringAttr(op.attributes["error_message"]).value
    for name in hidden.values():
        if f" Expected value >= 1 for dimension variable '{name}'." in message:
            op.operation.erase()
            return
        message = re.sub(rf",?args\S*\.shape = \({name},\)", "", message)
        found = re.search(
            rf"'{name}' = {{(\d+)}} from specification '{name}' for dimension \S+ \(= {{(\d+)}}\), ", message
        )
        if found is not None:
            message = message.replace(found.group(), "")
            for operand in found.groups():  # no longer named in the message
                op.operands[1 + int(operand)] = op.operands[1]
    op.attributes["error_message"] = ir.StringAttr.get(message)
