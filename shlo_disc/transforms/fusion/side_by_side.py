# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences that do not need each other, such as the two ways of a bidirectional network, become one kernel.

Each thread reads all weights of a recurrence in every iteration. Two of few rows, one after the other, would be divided
among the threads by rows, each reading the weights of both; side by side, each thread has one of them to itself.
"""

from __future__ import annotations

from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.annotate import entry_block
from shlo_disc.shape_dialect.regions import terminator_of
from shlo_disc.transforms.fusion.budget import Budget


def merge_recurrences(module: ir.Module, budget: Budget) -> None:
    """Merge the calls of a fused module that may run at the same time."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    block = entry_block(module)
    waiting: ir.OpView | None = None
    for op in list(block.operations):
        if waiting is not None and op.operation in _readers(waiting, block):
            waiting = None
        if isinstance(op, func.CallOp) and _kind(_callee(op, functions)) == "recurrence":
            waiting = _merged(waiting, op, functions) if waiting is not None and budget.take() else op


def _readers(call: ir.OpView, block: ir.Block) -> set[ir.Operation]:
    """The ops of the block that read a call's results, themselves or in regions of theirs."""
    readers: set[ir.Operation] = set()
    for use in (use for result in call.results for use in result.uses):
        op = use.owner.operation
        while op.block != block:
            op = op.parent.operation
        readers.add(op)
    return readers


def _callee(call: ir.OpView, functions: dict[str, func.FuncOp]) -> func.FuncOp:
    return functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]


def _kind(function: func.FuncOp) -> str:
    return ir.StringAttr(function.attributes["disc.kind"]).value


def _merged(first: ir.OpView, second: ir.OpView, functions: dict[str, func.FuncOp]) -> ir.OpView:
    """One call in the place of the second one, of the first one's function with the second one's ops in it."""
    function, other = _callee(first, functions), _callee(second, functions)
    block, returns, others = function.entry_block, terminator_of(function.entry_block), terminator_of(other.entry_block)
    for argument in list(other.entry_block.arguments):
        argument.replace_all_uses_with(block.add_argument(argument.type, second.location))
    for op in list(other.entry_block.operations)[:-1]:
        op.operation.move_before(returns.operation)
    results = [*returns.operands, *others.operands]
    with ir.InsertionPoint(returns), returns.location:
        func.ReturnOp(results)
    returns.operation.erase()
    others.operation.erase()
    other.operation.erase()
    type_ = ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in results])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    with ir.InsertionPoint(second), second.location:
        call = func.CallOp(function, [*first.operands, *second.operands])
    for old, new in zip([*first.results, *second.results], call.results, strict=True):
        old.replace_all_uses_with(new)
    first.operation.erase()
    second.operation.erase()
    return call
