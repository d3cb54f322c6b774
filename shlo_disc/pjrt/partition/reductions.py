# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions over dimensions that devices share: each reduces its part, and the parts are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .resharding import Placed, bindings, element_of, group_attributes, shape_of
from .sharding import Axes, Sharding, merged

if TYPE_CHECKING:
    from .partitioner import Partitioner

_IDEMPOTENT = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.and", "stablehlo.or")
_NEUTRAL = {"stablehlo.add": 0, "stablehlo.multiply": 1}


def reduce(p: Partitioner, op: Any) -> list[Placed]:
    """Dimensions that stay keep their axes; of those that go, only what `_combines` allows."""
    half = len(op.operands) // 2
    values, starts = list(op.operands)[:half], list(op.operands)[half:]
    rank = len(shape_of(values[0]))
    gone = {int(d) for d in bindings().DenseI64ArrayAttr(op.attributes["dimensions"])}
    sharding = merged((p.placed(v).sharding for v in values), rank)
    if not _combines(op):
        sharding = sharding.only(d for d in range(rank) if d not in gone)
    kept = Sharding(tuple(axes for d, axes in enumerate(sharding.dims) if d not in gone))
    placed = p.clone(op, [*(p.sharded(v, sharding) for v in values), *map(p.whole, starts)], [kept] * half)
    axes = tuple(axis for d, axes in enumerate(sharding.dims) if d in gone for axis in axes)
    if not axes:
        return placed
    inner, _ = list(op.regions[0].blocks[0].operations)
    if inner.operation.name == "stablehlo.add":
        return [p.add_parts(x, axes, r) for x, r in zip(placed, op.results, strict=True)]
    return [combine(p, x, axes, inner.operation.name) for x in placed]


def combine(p: Partitioner, placed: Placed, axes: Axes, name: str) -> Placed:
    """The values of devices along `axes`, combined by the op `name`."""
    ir = bindings()
    made = ir.Operation.create(
        "stablehlo.all_reduce",
        results=[placed.value.type],
        operands=[placed.value],
        attributes=group_attributes(axes, p.devices),
        regions=1,
    )
    _fill_body(made.regions[0], name, ir.RankedTensorType.get([], element_of(placed.value)))
    return Placed(made.results[0], placed.sharding, tuple(axis for axis in placed.sums if axis not in axes))


def _fill_body(region: Any, name: str, scalar: Any) -> None:
    """The body of a reduction by one op."""
    ir = bindings()
    block = ir.Block.create_at_start(region, [scalar, scalar])
    with ir.InsertionPoint(block):
        combined = ir.Operation.create(name, results=[scalar], operands=list(block.arguments)).results
        ir.Operation.create("stablehlo.return", operands=list(combined))


def _combines(op: Any) -> bool:
    """Tells whether partial results of the op, each from the start value on, can be combined by its body."""
    if len(op.results) != 1:
        return False
    block = op.regions[0].blocks[0]
    operations = list(block.operations)
    if len(operations) != 2 or list(operations[1].operands) != list(operations[0].results):
        return False
    inner = operations[0].operation
    if set(inner.operands) != set(block.arguments):
        return False
    return inner.name in _IDEMPOTENT or (inner.name in _NEUTRAL and _is_number(op.operands[1], _NEUTRAL[inner.name]))


def _is_number(value: Any, number: int) -> bool:
    """Tells whether a scalar is a constant of that value."""
    ir = bindings()
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "stablehlo.constant":
        return False
    element = ir.RankedTensorType(value.type).element_type
    if isinstance(element, ir.FloatType):
        same: Any = ir.FloatAttr.get(element, float(number))
    elif isinstance(element, ir.IntegerType):
        same = ir.IntegerAttr.get(element, number)
    else:
        return False
    splat = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get([], element), same)
    return bool(owner.attributes["value"] == splat)
