# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `plan` stage: liveness, in-place results and one symbolic arena.

Every call of a kernel gets an attribute `disc.buffers`, one entry per result: `{space = "result", index = 0}` when the
kernel writes straight into a result of the program, or `{space = "arena", offset = "...", bytes = "..."}`. The module
gets `disc.arena_bytes`, the size of the one allocation that a call makes. Offsets and sizes are expressions of the
symbols: one plan holds for every shape. Slots are reused first where the facts prove that the new buffer fits, then
where it is largest in common; a slot whose tenants cannot be compared is as large as their maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.annotate import entry_block
from shlo_disc.shape_dialect.dialect import integer_attr
from shlo_disc.shape_dialect.expr import Expr, round_up
from shlo_disc.shape_dialect.facts import Facts, Relation
from shlo_disc.shape_dialect.types import bytes_of, dims_of, element_type_of, product
from shlo_disc.transforms.views import root

ALIGNMENT = 64


@dataclass(eq=False)
class Slot:
    """A part of the arena that several buffers use one after the other."""

    size: Expr
    is_free: bool = False


@dataclass
class Buffer:
    """Where one kernel result lives: a result of the program, or a slot of the arena."""

    bytes: Expr
    result: int | None = None
    slot: Slot | None = None


@dataclass
class MemoryPlan:
    """The buffers of all kernel results and the slots of the arena, in order."""

    buffers: dict[ir.Value, Buffer] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)

    def offset(self, slot: Slot) -> Expr:
        """The offset of a slot in bytes."""
        before = self.slots[: self.slots.index(slot)]
        return sum((s.size for s in before), Expr.const(0))

    @property
    def arena_bytes(self) -> Expr:
        """The size of the arena in bytes."""
        return sum((s.size for s in self.slots), Expr.const(0))


class Planner:
    """One walk over the entry block in execution order."""

    def __init__(self, block: ir.Block, facts: Facts, functions: dict[str, ir.OpView]):
        self.facts = facts
        self.functions = functions
        self.plan = MemoryPlan()
        self.calls = [op for op in block.operations if op.operation.name == "func.call"]
        terminator = block.operations[len(block.operations) - 1]
        self.results = {root(v): i for i, v in enumerate(terminator.operands)}
        self.last_use = self._last_uses()

    def _last_uses(self) -> dict[ir.Value, int]:
        last: dict[ir.Value, int] = {}
        for position, call in enumerate(self.calls):
            for value in call.operands:
                last[root(value)] = position
        return last

    def run(self) -> MemoryPlan:
        """Place every kernel result."""
        for position, call in enumerate(self.calls):
            for index, result in enumerate(call.results):
                self._place(position, call, index, result)
            for value in {root(v) for v in call.operands} | set(call.results):
                buffer = self.plan.buffers.get(value)
                if buffer is not None and buffer.slot is not None and self.last_use.get(value, position) <= position:
                    buffer.slot.is_free = buffer.slot.is_free or not self._is_taken_over(buffer, value, position)
        return self.plan

    def _is_taken_over(self, buffer: Buffer, value: ir.Value, position: int) -> bool:
        """A later tenant that got this slot in place still needs it."""
        return any(
            other.slot is buffer.slot and v != value and self.last_use.get(v, position) > position
            for v, other in self.plan.buffers.items()
        )

    def _place(self, position: int, call: ir.OpView, index: int, result: ir.Value) -> None:
        exact = self.facts.simplify(product(dims_of(result)) * bytes_of(element_type_of(result)))
        if result in self.results:
            self.plan.buffers[result] = Buffer(exact, result=self.results[result])
            return
        size = self.facts.simplify(round_up(exact, ALIGNMENT))
        slot = self._in_place(position, call, index, result) or self._free_slot(size)
        if slot is None:
            slot = Slot(size)
            self.plan.slots.append(slot)
        slot.is_free = False
        self.plan.buffers[result] = Buffer(exact, slot=slot)

    def _in_place(self, position: int, call: ir.OpView, index: int, result: ir.Value) -> Slot | None:
        """The slot of an input that dies here and that the kernel reads only at the index it writes."""
        function = self.functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
        if "disc.collapsed" not in function.attributes:
            return None
        roots = [root(v) for v in call.operands]
        for value, source in zip(call.operands, roots, strict=True):
            buffer = self.plan.buffers.get(source)
            if buffer is None or buffer.slot is None or self.last_use[source] != position or roots.count(source) != 1:
                continue
            taken = any(r in self.plan.buffers and self.plan.buffers[r].slot is buffer.slot for r in call.results)
            if value.type == result.type and not taken:
                return buffer.slot
        return None

    def _free_slot(self, size: Expr) -> Slot | None:
        free = [s for s in self.plan.slots if s.is_free]
        fitting = [s for s in free if self.facts.prove(Relation.ge(s.size, size)) is True]
        if fitting:
            return min(fitting, key=lambda s: self.facts.estimate(s.size))
        if not free:
            return None
        slot = max(free, key=lambda s: self.facts.estimate(s.size))
        if self.facts.prove(Relation.ge(size, slot.size)) is True:
            slot.size = size
        else:
            slot.size = Expr.maximum(slot.size, size)
        return slot


def plan_memory(module: ir.Module, facts: Facts) -> MemoryPlan:
    """Plan a fused module and write the plan into it, in place."""
    block = entry_block(module)
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    plan = Planner(block, facts, functions).run()
    for call in block.operations:
        if call.operation.name == "func.call":
            entries = [_entry(plan, plan.buffers[r]) for r in call.results]
            call.attributes["disc.buffers"] = ir.ArrayAttr.get(entries)
    module.operation.attributes["disc.arena_bytes"] = ir.StringAttr.get(str(plan.arena_bytes))
    return plan


def _entry(plan: MemoryPlan, buffer: Buffer) -> ir.Attribute:
    text = ir.StringAttr.get
    if buffer.slot is None:
        return ir.DictAttr.get({"space": text("result"), "index": integer_attr(buffer.result or 0)})
    offset = str(plan.offset(buffer.slot))
    return ir.DictAttr.get({"space": text("arena"), "offset": text(offset), "bytes": text(str(buffer.bytes))})
