# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that a loop carries and does not have to.

Producers pass everything that a loop needs through its carried values, sizes included. A value that the body returns
as it came is the initial value in every iteration, and the loop can just as well use that from outside. A value that
nothing depends on but itself is not needed at all, nor is a token: iterations follow each other anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.utils.regions import nested_blocks, terminator_of


def carry_less(block: ir.Block) -> None:
    """Loops of the block, and of the loops and branches in it, carry only what changes and is needed, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            carry_less(nested)
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
    """The carried values that a result in use, the condition, or a call with side effects depends on."""
    condition, body = nested_blocks(loop)
    returned = terminator_of(body).operands
    needed: set[int] = set()
    pending = [i for i, r in enumerate(loop.results) if list(r.uses)] + _arguments_read(condition)
    for op in body.operations:
        if has_side_effects(op.operation):
            pending += _arguments_read(body, values_read(op.operation))
    while pending:
        position = pending.pop()
        if position not in needed:
            needed.add(position)
            pending += _arguments_read(body, [returned[position]])
    return needed


def has_side_effects(op: ir.Operation) -> bool:
    """Whether an op, or one in its regions, is a call that counts for more than its results."""
    if "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value:
        return True
    inner = [i.operation for region in op.regions for block in region.blocks for i in block.operations]
    return any(has_side_effects(i) for i in inner)


def _arguments_read(block: ir.Block, values: Sequence[ir.Value] | None = None) -> list[int]:
    """The arguments of a block that `values` depend on; by default, those that are used at all."""
    arguments: dict[ir.Value, int] = {argument: i for i, argument in enumerate(block.arguments)}
    if values is None:
        return [i for argument, i in arguments.items() if list(argument.uses)]
    found: set[int] = set()
    seen: set[ir.Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in arguments:
            found.add(arguments[value])
        elif not isinstance(value.owner, ir.Block):
            pending += values_read(value.owner.operation)
    return sorted(found)


def values_read(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op and of all ops in its regions."""
    inner = [i.operation for region in op.regions for block in region.blocks for i in block.operations]
    return [*op.operands, *(v for i in inner for v in values_read(i))]


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
