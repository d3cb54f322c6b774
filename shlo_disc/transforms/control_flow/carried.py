# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that a loop carries and does not have to.

Producers pass everything that a loop needs through its carried values, sizes included. A value that the body returns
as it came is the initial value in every iteration, and the loop can just as well use that from outside. A value that
nothing depends on but itself is not needed at all, nor is a token: iterations follow each other anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.utils.regions import terminator_of

SELECTION = "shlo_disc.nonzero"
"""The target of the custom call by which a traced function asks for the positions of true elements."""


def drop_carried(block: ir.Block) -> None:
    """Loops of the block, and of the loops and branches in it, carry only what changes and is needed, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            drop_carried(nested)
        if op.operation.name == "stablehlo.while":
            _remove_from(op)


def _remove_from(loop: ir.OpView) -> None:
    condition, body = nested_blocks(loop)
    returned = list(terminator_of(body).operands)
    needed = _needed(loop)
    removed = [
        i
        for i, (start, argument) in enumerate(zip(loop.operands, body.arguments, strict=True))
        if start.type == argument.type
        and (returned[i] in (argument, start) or i not in needed or str(start.type) == "!stablehlo.token")
    ]
    if not removed:
        return
    for i in removed:
        for value in (condition.arguments[i], body.arguments[i], loop.results[i]):
            value.replace_all_uses_with(loop.operands[i])
    kept = [i for i in range(len(loop.operands)) if i not in removed]
    for nested in (condition, body):
        for i in reversed(removed):
            nested.erase_argument(i)
    old = terminator_of(body)
    with ir.InsertionPoint(old):
        ir.Operation.create("stablehlo.return", operands=[old.operands[i] for i in kept], loc=old.location)
    old.operation.erase()
    replace_loop(loop, kept)


def _needed(loop: ir.OpView) -> set[int]:
    """The carried values that a result in use, the condition, or an op with side effects depends on."""
    condition, body = nested_blocks(loop)
    returned = list(terminator_of(body).operands)
    pending = [returned[i] for i, result in enumerate(loop.results) if is_used(result)]
    needed = {i for i, result in enumerate(loop.results) if is_used(result)}
    for i, argument in enumerate(condition.arguments):
        if is_used(argument):
            needed.add(i)
            pending.append(returned[i])
    for op in body.operations:
        if has_side_effects(op.operation):
            pending += values_read(op.operation)
    positions = {argument: i for i, argument in enumerate(body.arguments)}
    unread = {result: op.operation for op in body.operations for result in op.results}
    while pending:
        value = pending.pop()
        if value in positions:
            position = positions.pop(value)
            needed.add(position)
            pending.append(returned[position])
        elif value in unread:
            op = unread[value]
            for result in op.results:
                del unread[result]
            pending += values_read(op)
    return needed


def is_used(value: ir.Value) -> bool:
    """Tells whether anything reads a value."""
    return next(iter(value.uses), None) is not None


def has_side_effects(op: ir.Operation) -> bool:
    """Tells whether an op, or one in its regions, counts for more than its results, as reading a size does."""
    if "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value:
        return True
    if op.name == "disc.bind" or is_selection(op):
        return True
    return any(
        has_side_effects(i.operation) for region in op.regions for block in region.blocks for i in block.operations
    )


def is_selection(op: ir.Operation) -> bool:
    """Tells whether an op is a selection of the importer's, whose size may be read where its positions are not."""
    if op.name != "stablehlo.custom_call":
        return False
    return ir.StringAttr(op.attributes["call_target_name"]).value == SELECTION


def values_read(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op and of all ops in its regions."""
    if not len(op.regions):
        return list(op.operands)
    found: list[ir.Value] = []
    pending = [op]
    while pending:
        current = pending.pop()
        found += current.operands
        pending += (i.operation for region in current.regions for block in region.blocks for i in block.operations)
    return found


def replace_loop(loop: ir.OpView, kept: Sequence[int]) -> None:
    """A loop that carries only the values at `kept`, in place; its blocks and the other results' users are ready."""
    new = ir.Operation.create(
        "stablehlo.while",
        results=[loop.results[i].type for i in kept],
        operands=[loop.operands[i] for i in kept],
        attributes={name: loop.attributes[name] for name in loop.attributes},
        regions=2,
        loc=loop.location,
        ip=ir.InsertionPoint(loop),
    )
    for block, region in zip(nested_blocks(loop), new.regions, strict=True):
        block.append_to(region)
    for i, result in zip(kept, new.results, strict=True):
        loop.results[i].replace_all_uses_with(result)
    loop.operation.erase()
