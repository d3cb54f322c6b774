# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences that do not need each other, such as the two ways of a bidirectional network, become one kernel.

Each thread reads all weights of a recurrence in every iteration. Two of few rows, one after the other, would be divided
among the threads by rows, each reading the weights of both; in one kernel, each thread has one of them to itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.fusion import Recurrence, RecurrentLoop, fusion_of, set_fusion
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of
from shlo_disc.transforms.decisions import Decisions, Pattern

Functions = dict[str, func.FuncOp]


@dataclass
class _Pair:
    """Calls of two recurrences in `block`, in their order. `calls`: how many each function has."""

    first: ir.OpView
    second: ir.OpView
    block: ir.Block
    calls: Counter[str]


HORIZONTAL: Pattern[_Pair] = Pattern("horizontal-recurrence", "two recurrences run in one kernel (horizontal fusion)")


@HORIZONTAL.requires("no op up to the second call, itself included, reads a result of the first")
def _nothing_waits_for_the_first(pair: _Pair) -> bool:
    second = pair.second.operation
    readers = _readers(pair.first, pair.block)
    return all(reader != second and second.is_before_in_block(reader) for reader in readers)


@HORIZONTAL.requires("each of the two functions is called once")
def _functions_are_called_once(pair: _Pair) -> bool:
    return all(pair.calls[callee_of(call)] == 1 for call in (pair.first, pair.second))


def merge_recurrences(module: ir.Module, decisions: Decisions) -> None:
    """Merge the calls of a fused module that may run at the same time."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    block = entry_block(module)
    calls = [op for inner in all_blocks(block) for op in inner.operations if isinstance(op, func.CallOp)]
    counts = Counter(map(callee_of, calls))
    waiting: ir.OpView | None = None
    for op in (call for call in calls if call.operation.block == block):
        if isinstance(fusion_of(_callee(op, functions)), Recurrence):
            pair = HORIZONTAL.match(lambda call: waiting and _Pair(waiting, call, block, counts), op)  # noqa: B023
            is_taken = pair is not None and decisions.take(HORIZONTAL.name, op)
            waiting = _merged(pair.first, pair.second, functions) if pair is not None and is_taken else op


def _readers(call: ir.OpView, block: ir.Block) -> set[ir.Operation]:
    """The ops of the block that read a call's results, themselves or in regions of theirs."""
    readers: set[ir.Operation] = set()
    for use in (use for result in call.results for use in result.uses):
        op = use.owner.operation
        while op.block != block:
            op = op.parent.operation
        readers.add(op)
    return readers


def _callee(call: ir.OpView, functions: Functions) -> func.FuncOp:
    return functions[callee_of(call)]


def _loops(function: func.FuncOp) -> tuple[RecurrentLoop, ...]:
    fusion = fusion_of(function)
    return fusion.loops if isinstance(fusion, Recurrence) else ()


def _merged(first: ir.OpView, second: ir.OpView, functions: Functions) -> ir.OpView:
    """One call in the place of the second one, of the first one's function with the second one's ops in it."""
    function, other = _callee(first, functions), _callee(second, functions)
    block, returns, others = function.entry_block, terminator_of(function.entry_block), terminator_of(other.entry_block)
    for argument in list(other.entry_block.arguments):
        argument.replace_all_uses_with(block.add_argument(argument.type, second.location))
    for op in list(other.entry_block.operations)[:-1]:
        op.operation.move_before(returns.operation)
    set_fusion(function, Recurrence(loops=(*_loops(function), *_loops(other))))
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
