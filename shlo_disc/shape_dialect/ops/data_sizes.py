# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data-dependent sizes: each gets a symbol of its own, bound to the tensor that holds its value.

`disc.bind` marks where the value becomes known. Ops that only arrange the elements of a shape are looked through, so
that `concatenate(count, 4)` is the shape `[n0, 4]`.
"""

from __future__ import annotations

from shlo_disc.shape_dialect.dialect.ops import BindOp
from shlo_disc.shape_dialect.dialect.types import dims_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.values import Elements, SymbolicValues, bound_elements, is_shape_like
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts


def data_elements(value: ir.Value, values: SymbolicValues) -> Elements | None:
    """The elements of a shape operand, data among them bound to symbols; None when `value` cannot be a shape."""
    known = values.get(value)
    if known is not None:
        return known
    if not is_shape_like(value.type):
        return None
    owner = value.owner
    if not isinstance(owner, ir.Block) and _only_arranges(owner, values):
        for operand in owner.operands:
            data_elements(operand, values)
        values.visit(owner.opview)
        if values.get(value) is not None:
            return values.get(value)
    return _bind(value, values)


def _only_arranges(op: ir.Operation, values: SymbolicValues) -> bool:
    rule = values.rules.get(op.name)
    if rule is None or not rule.arranges or not all(is_shape_like(v.type) for v in op.operands):
        return False
    widths = [ir.IntegerType(ir.RankedTensorType(v.type).element_type).width for v in (op.operands[0], op.results[0])]
    return widths[0] <= widths[1]


def _bind(value: ir.Value, values: SymbolicValues) -> Elements | None:
    type_ = ir.RankedTensorType(value.type)
    element = ir.IntegerType(type_.element_type)
    if element.width == 1:
        return None
    count = 1
    for size in type_.shape:
        count *= size
    names = [declare_data(values.facts, element) for _ in range(count)]
    owner = value.owner
    first = owner.operations[0] if isinstance(owner, ir.Block) else owner
    with ir.InsertionPoint(first), first.location:
        bind = BindOp(value, dims_attr(map(Expr.symbol, names)))
    if not isinstance(owner, ir.Block):
        bind.operation.move_after(owner)
    values.visit(bind)
    return values.get(value)


def declare_data(facts: Facts, element: ir.IntegerType) -> str:
    """A fresh symbol for a number that is read from data of an integer type."""
    number = len(facts.data_symbols)
    while f"n{number}" in facts.symbols:
        number += 1
    name = f"n{number}"
    low = 0 if element.is_unsigned else -(1 << (element.width - 1))
    high = low + (1 << element.width) - 1
    if element.width < 64:
        facts.declare(name, min=low, max=high, data=True)
    else:
        facts.declare(name, min=None, data=True)  # an unsigned number that takes all 64 bits reads as negative
    return name


def bound_symbols(bind: ir.OpView | ir.Operation) -> list[str]:
    """The symbols of a `disc.bind`, one for each element of its operand."""
    return [str(e) for e in bound_elements(bind)]
