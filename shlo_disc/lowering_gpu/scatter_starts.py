# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatters that compute what their results start from become two kernels: a loop that writes that, and the scatter.

On a GPU nothing waits for the threads of other blocks within a kernel, and an update may come from any thread. The loop
writes where the scatter's results lie, so that the scatter changes some elements of what is there. What is all zeros
needs no kernel, for memory is cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shlo_disc.lowering.scatter import results_from_zeros, scatter_in
from shlo_disc.shape_dialect.dialect.buffers import buffers_of, set_buffers
from shlo_disc.shape_dialect.dialect.fusion import Loop, Scatter, fusion_of, is_fusion, set_fusion
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of


def split_scatter_starts(module: ir.Module) -> None:
    """Split the scatters of a planned module, in place."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    split = {name: _Split(op) for name, op in functions.items() if _computes_starts(op)}
    for block in all_blocks(entry_block(module)):
        for call in list(block.operations):
            if call.operation.name == "func.call":
                found = split.get(callee_of(call))
                if found is not None:
                    found.replace(call)


def _computes_starts(function: func.FuncOp) -> bool:
    what = fusion_of(function) if is_fusion(function) else None
    return isinstance(what, Scatter) and -1 in what.updates and not results_from_zeros(function)


class _Split:
    """One fusion as two: `start`, which makes the results of the numbers `own`, and the scatter that takes them."""

    def __init__(self, function: func.FuncOp):
        self.scatter = function
        what: Scatter = fusion_of(function)  # type: ignore[assignment]
        self.own = [number for number, argument in enumerate(what.updates) if argument < 0]
        self.start = self._start()
        self._take(what)

    def _start(self) -> func.FuncOp:
        """The loop, with the ops and arguments that the operands of its own need."""
        block = self.scatter.entry_block
        wanted = [scatter_in(self.scatter).operands[number] for number in self.own]
        needed = _needed(wanted)
        self.read = [n for n, argument in enumerate(block.arguments) if argument in needed]
        arguments = [block.arguments[n] for n in self.read]
        with ir.InsertionPoint(self.scatter), self.scatter.location:
            type_ = ir.FunctionType.get([a.type for a in arguments], [v.type for v in wanted])
            start = func.FuncOp(f"{self.scatter.name.value}_start", type_, visibility="private")
        with ir.InsertionPoint(start.add_entry_block()):
            meaning = dict(zip(arguments, start.entry_block.arguments, strict=True))
            for op in block.operations:
                if any(result in needed for result in op.results):
                    _clone(op.operation, meaning)
            func.ReturnOp([meaning[v] for v in wanted])
        set_fusion(start, Loop())
        return start

    def _take(self, what: Scatter) -> None:
        """Make the operands that the scatter computes its last arguments."""
        op, block, updates = scatter_in(self.scatter), self.scatter.entry_block, list(what.updates)
        for number in self.own:
            updates[number] = len(block.arguments)
            op.operands[number] = block.add_argument(op.operands[number].type, op.location)
        for inner in reversed(list(block.operations)[:-1]):
            if not any(True for result in inner.results for _ in result.uses):
                inner.operation.erase()
        types = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in terminator_of(block).operands])
        self.scatter.attributes["function_type"] = ir.TypeAttr.get(types)
        set_fusion(self.scatter, replace(what, updates=tuple(updates)))

    def replace(self, call: ir.OpView) -> None:
        """A call of the scatter by one of each."""
        buffers = buffers_of(call)
        with ir.InsertionPoint(call), call.location:
            started = func.CallOp(self.start, [call.operands[number] for number in self.read])
            scattered = func.CallOp(self.scatter, [*call.operands, *started.results])
        for new in (started, scattered):
            for name, attribute in call.attributes.items():
                if name not in new.attributes:
                    new.attributes[name] = attribute
        set_buffers(started, [buffers[number] for number in self.own])
        for old, new in zip(call.results, scattered.results, strict=True):
            old.replace_all_uses_with(new)
        call.operation.erase()


def _needed(values: Sequence[ir.Value]) -> set[ir.Value]:
    """The values that others are computed from, and these."""
    found: set[ir.Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        op = defining_op(value)
        if op is not None and value not in found:
            pending += op.operands
        found.add(value)
    return found


def _clone(op: ir.Operation, meaning: dict[ir.Value, ir.Value]) -> None:
    clone = op.clone()
    for position, value in enumerate(op.operands):
        clone.operands[position] = meaning[value]
    meaning.update(zip(op.results, clone.results, strict=True))
