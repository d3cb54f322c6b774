# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces the hidden arguments of a traced function by sizes that are read from data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.ops import BindOp, NonzeroOp, ShapeOp
from shlo_disc.shape_dialect.dialect.types import dims_attr, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BARRIER
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.control_flow.carried import is_selection

from .entry_arguments import drop_arguments
from .nested_sizes import KnownSize, is_around, refuse_size, sink_sizes


@dataclass
class _Selection:
    """The elements of `mask` that are true, counted in one block, whose positions `nonzero` gives."""

    mask: ir.Value
    size: Expr
    nonzero: ir.Operation


def open_data_sizes(function: ir.OpView, hidden: Mapping[int, str], taken: Iterable[str] = ()) -> list[str]:
    """Turn every `custom_call @shlo_disc.nonzero` into a count, a `disc.bind` and a `disc.nonzero`, in place.

    hidden: the positions of the hidden arguments and the symbols of their sizes. taken: other symbols. Returns the
    symbols of all counts: where a size is asked for in several blocks, such as the loops of a forward and a backward
    pass, each has its own. Raises UnsupportedError when a hidden argument stands for two sizes, and when a size is used
    outside of the loop or branch in which it is known.
    """
    if not hidden:
        return []
    block = function.regions[0].blocks[0]
    arguments = {block.arguments[position]: name for position, name in hidden.items()}
    used = {*taken, *hidden.values()}
    free = (name for i in itertools.count() if (name := f"n{i}") not in used)
    selections: dict[ir.Value, dict[ir.Block, _Selection]] = {argument: {} for argument in arguments}
    for argument in arguments:
        _leave_out_of_barriers(argument)
    for op in [op for inner in all_blocks(block) for op in inner.operations]:
        if is_selection(op.operation):
            _open(op, selections[op.operands[1]], arguments[op.operands[1]], free)
        elif is_target(op, "shape_assertion"):
            _forget_hidden(op, hidden)
    for argument, found in selections.items():
        if block not in found:  # and its size is known in those blocks only, or nowhere
            sink_sizes(argument, [KnownSize(inner, s.nonzero, s.size) for inner, s in found.items()])
        size = found[block].size if block in found else Expr.const(0)
        for use in list(argument.uses):
            _replace_size(use.owner, size)
    drop_arguments(function, hidden)
    return [str(s.size) for found in selections.values() for s in found.values()]


def is_target(op: ir.OpView, target: str) -> bool:
    """Tells whether an op is a custom call of `target`."""
    if op.operation.name != "stablehlo.custom_call":
        return False
    return ir.StringAttr(op.attributes["call_target_name"]).value == target


def _leave_out_of_barriers(argument: ir.Value) -> None:
    """Rewrite the barriers that a hidden argument passes, of `jax.checkpoint`, for what has elements."""
    while barrier := next((u.owner.operation for u in argument.uses if u.owner.operation.name == BARRIER), None):
        kept = [(v, result) for v, result in zip(barrier.operands, barrier.results, strict=True) if v != argument]
        values = [value for value, _ in kept]
        with ir.InsertionPoint(barrier), barrier.location:
            new = ir.Operation.create(BARRIER, [value.type for value in values], values)
        for (_, old), result in zip(kept, new.results, strict=True):
            old.replace_all_uses_with(result)
        for value, result in zip(barrier.operands, barrier.results, strict=True):
            if value == argument:
                result.replace_all_uses_with(argument)
        barrier.erase()


def _open(op: ir.OpView, found: dict[ir.Block, _Selection], name: str, free: Iterator[str]) -> None:
    """Open a selection. `found` are those of the same hidden argument, whose symbol is `name`; `free` has others."""
    mask, block = op.operands[0], op.operation.block
    known = found.get(block)
    is_within = any(is_around(other, block) for other in found if other != block)
    if is_within or (known is not None and known.mask != mask):
        reason = "two sizes that depend on data share one trace of jax.jit"
        refuse_size(op, reason, "call the inner function without jax.jit")
    size = known.size if known is not None else Expr.symbol(next(free) if found else name)
    with ir.InsertionPoint(op), op.location:
        if known is None:
            BindOp(_count(mask), dims_attr([size]))
        new = NonzeroOp(mask, result=tensor_type((size,), element_type_of(op.results[0])))
    found.setdefault(block, _Selection(mask, size, new.operation))
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
