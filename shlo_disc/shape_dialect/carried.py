# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that a loop carries and never changes.

Producers pass everything that a loop needs through its carried values, sizes included. A value that the body returns
as it came is the initial value in every iteration, and the loop can just as well use that from outside.
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.regions import nested_blocks, terminator_of


def remove_invariants(block: ir.Block) -> None:
    """Loops of the block, and of the loops and branches in it, no longer carry what they do not change, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            remove_invariants(nested)
        if op.operation.name == "stablehlo.while":
            _remove_from(op)


def _remove_from(loop: ir.OpView) -> None:
    condition, body = nested_blocks(loop)
    returned = list(terminator_of(body).operands)
    invariant = [
        i
        for i, (start, argument) in enumerate(zip(loop.operands, body.arguments, strict=True))
        if returned[i] in (argument, start) and start.type == argument.type
    ]
    if not invariant:
        return
    for i in invariant:
        for value in (condition.arguments[i], body.arguments[i], loop.results[i]):
            value.replace_all_uses_with(loop.operands[i])
    kept = [i for i in range(len(loop.operands)) if i not in invariant]
    for nested in (condition, body):
        for i in reversed(invariant):
            nested.erase_argument(i)
    old = terminator_of(body)
    with ir.InsertionPoint(old):
        ir.Operation.create("stablehlo.return", operands=[old.operands[i] for i in kept], loc=old.location)
    old.operation.erase()
    replace_loop(loop, kept)


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
