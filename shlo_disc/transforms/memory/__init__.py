# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `plan` stage: liveness, in-place results and one symbolic arena.

Every call of a kernel, loop and branch gets an attribute `disc.buffers` (`shape_dialect/dialect/buffers.py`), and the
module the size of the one allocation that a call makes. Offsets and sizes are expressions of the symbols: one plan
holds for every shape. Slots are reused first where the facts prove that the new buffer fits, then where it is largest
in common; a slot whose tenants cannot be compared is as large as their maximum.

What a loop carries has one buffer from its start to its last use, which the initial value, every iteration's value and
the result share where they can: whoever makes the next value writes it there if the present one is not needed any more,
or is read only at the index that is written. Where they cannot, the values lie in other buffers and are copied when an
iteration, or a branch, ends: a reader of the plan compares the entries.

Where sizes are read from data, each segment of the program has an arena of its own, which lives until the call ends. A
slot of an earlier segment has its size for good. So has each variant of a program (`ops/variants.py`), of which a call
runs one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect import buffers
from shlo_disc.shape_dialect.dialect.buffers import set_arenas, set_buffers
from shlo_disc.shape_dialect.dialect.names import MEMORY_LIMIT, VARIANT
from shlo_disc.shape_dialect.dialect.records import read_integer
from shlo_disc.shape_dialect.dialect.types import bytes_of, dim_attr, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import CONTROL
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.ops.segments import segment_of, symbol_segments
from shlo_disc.shape_dialect.ops.variants import first_that_fits, variants_in
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr, round_up
from shlo_disc.shape_dialect.symbolic.facts import Facts, Relation
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block, terminator_of
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.memory.liveness import Liveness
from shlo_disc.transforms.memory.overwrite import may_overwrite

ALIGNMENT = 64


@dataclass(eq=False)
class Slot:
    """A part of the arena that several buffers use one after the other, the last one up to the position `until`.

    A slot may be cut into two `parts`, one behind the other, for smaller buffers: those use it at other times than
    buffers that are as large as the slot. whole: what it is a part of. start: where, in bytes.
    """

    size: Expr
    segment: int = 0
    until: int = 0
    whole: Slot | None = None
    start: Expr = field(default_factory=lambda: Expr.const(0))
    parts: tuple[Slot, ...] = ()

    @property
    def busy_until(self) -> int:
        """The position up to which a buffer lies in it, in a part of it, or in what it is a part of."""
        return max(self._parts_until(), self._whole_until())

    def _parts_until(self) -> int:
        return max([self.until, *(part._parts_until() for part in self.parts)])

    def _whole_until(self) -> int:
        return 0 if self.whole is None else max(self.whole.until, self.whole._whole_until())

    def cut(self, size: Expr) -> tuple[Slot, Slot]:
        """Two parts, the first of which has `size` bytes."""
        first = Slot(size, self.segment, 0, self)
        rest = Slot(self.size - size, self.segment, 0, self, size)
        self.parts = (first, rest)
        return first, rest


@dataclass
class Buffer:
    """The buffer of one value: a result of the program, or a slot of the arena."""

    bytes: Expr
    result: int | None = None
    slot: Slot | None = None


@dataclass
class MemoryPlan:
    """The buffers of all kernel results and the slots of the arena, in order."""

    buffers: dict[ir.Value, Buffer] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)

    def offsets(self) -> dict[Slot, Expr]:
        """The offset of every slot in its arena, in bytes."""
        found: dict[Slot, Expr] = {}
        ends: dict[int, Expr] = {}
        for slot in self.slots:  # a part stands behind what it is a part of
            if slot.whole is not None:
                found[slot] = found[slot.whole] + slot.start
                continue
            found[slot] = ends.get(slot.segment, Expr.const(0))
            ends[slot.segment] = found[slot] + slot.size
        return found

    def arena_bytes(self, segment: int = 0) -> Expr:
        """The size of a segment's arena in bytes."""
        return sum((s.size for s in self.slots if s.segment == segment and s.whole is None), Expr.const(0))


REUSE = Pattern["SlotUse"]("reuse-slot", "a value lies where others have been")


class SlotUse(NamedTuple):
    """A slot that a value would get that is made at a position."""

    slot: Slot
    position: int


@REUSE.requires("nothing that is there is needed any more")
def _is_free(found: SlotUse) -> bool:
    return found.slot.busy_until < found.position


DESTINATION = Pattern["Destination"]("destination", "a value is written at once where it has to be in the end")


class Destination(NamedTuple):
    """The value that is there while the block runs, if one is, and whether it may go when the new one is written."""

    present: ir.Value | None
    may_replace: Callable[[], bool]


@DESTINATION.requires("what is there is not needed any more, or read at the index that is written, or kept by branches")
def _may_go(found: Destination) -> bool:
    return found.may_replace()


class Planner:
    """One walk over the entry block, and the blocks of its loops and branches, in execution order."""

    def __init__(
        self,
        block: ir.Block,
        facts: Facts,
        functions: dict[str, ir.OpView],
        decisions: Decisions,
        variants: ir.Operation | None = None,
    ):
        self.block = block
        self.variants = variants
        self.facts = facts
        self.functions = functions
        self.decisions = decisions
        self.plan = MemoryPlan()
        self.live = Liveness.of(block)
        self.segment = 0
        self.kept: dict[ir.Value, ir.Value] = {}
        self._roots_of: dict[ir.Operation, list[ir.Value]] = {}
        self._estimates: dict[Expr, int] = {}
        self._bytes_of: dict[ir.Type, tuple[Expr, Expr]] = {}

    def run(self) -> MemoryPlan:
        """Place every result."""
        self._place_block(self.block)
        return self.plan

    def _place_block(self, block: ir.Block) -> None:
        for op in block.operations:
            if block == self.block:
                self.segment = segment_of(op)
            if op.operation.name == "func.call":
                for index, result in enumerate(op.results):
                    self._place_result(op.operation, index, result)
            elif op.operation.name == "stablehlo.while":
                self._place_loop(op.operation)
            elif self.variants is not None and op.operation == self.variants:
                self._place_variants(op.operation)
            elif op.operation.name in CONTROL:
                self._place_branches(op.operation)

    def _place_result(self, call: ir.Operation, index: int, result: ir.Value) -> None:
        buffer = self._destination(result, call, index) or self._in_place(call, index, result)
        self._assign(result, buffer, call, self.live.last_use(result))

    def _assign(self, value: ir.Value, buffer: Buffer | None, op: ir.Operation, until: int) -> None:
        """Put a value that begins with `op` into `buffer`, or into a slot that is free, up to the position `until`."""
        position = self.live.begin[op]
        if buffer is None:
            exact, size = self._bytes(value)
            slot = self._free_slot(size, position, op)
            if slot is None:
                slot = Slot(size, self.segment)
                self.plan.slots.append(slot)
            buffer = Buffer(exact, slot=slot)
        if buffer.slot is not None:
            buffer.slot.until = max(buffer.slot.until, until, position)
        self.plan.buffers[value] = buffer

    # ---- loops and branches -----------------------------------------------------------------------------------------

    def _place_loop(self, loop: ir.Operation) -> None:
        condition, body = nested_blocks(loop)
        for index, result in enumerate(loop.results):
            buffer = self._taken_over(loop, index) or self._destination(result, loop, index)
            self._assign(result, buffer, loop, max(self.live.end[loop], self.live.last_use(result)))
            for argument in (condition.arguments[index], body.arguments[index]):
                self.plan.buffers[argument] = self.plan.buffers[result]
        self._place_block(condition)
        self._place_block(body)

    def _taken_over(self, loop: ir.Operation, index: int) -> Buffer | None:
        """The buffer of an initial value that nothing else needs."""
        source = root(loop.operands[index])
        if self.live.init_of.get(source) != (loop, index) or not self.decisions.take("take-over", loop):
            return None
        return self.plan.buffers.get(source)

    def _place_variants(self, op: ir.Operation) -> None:
        """Each variant has an arena of its own, and its slots are no other's."""
        for index, result in enumerate(op.results):
            self._assign(result, self._destination(result, op, index), op, self.live.last_use(result))
        outer = self.plan.slots
        for number, branch in enumerate(nested_blocks(op)):
            self.segment = number + 1
            self.plan.slots = []
            self._place_block(branch)
            outer = [*outer, *self.plan.slots]
        self.segment, self.plan.slots = 0, outer

    def _place_branches(self, op: ir.Operation) -> None:
        for index, result in enumerate(op.results):
            until = max(self.live.end[op], self.live.last_use(result))
            self._assign(result, self._destination(result, op, index), op, until)
        for branch in nested_blocks(op):
            self._place_block(branch)

    # ---- where a value should be ------------------------------------------------------------------------------------

    def _destination(self, value: ir.Value, op: ir.Operation, index: int) -> Buffer | None:
        """The final buffer of `value`, result `index` of `op`, if it can be written there at once."""
        following = self.live.init_of.get(value)
        if following is not None:
            return self._destination(following[0].results[following[1]], op, index)
        if value not in self.live.returned:
            return None
        owner, position = self.live.returned[value]
        if owner.name == "func.func":
            return Buffer(self._bytes(value)[0], position)
        present = self._present(owner, position)
        found = Destination(present, lambda: present is None or self._may_replace(present, op, index))
        if DESTINATION.match(lambda d: d, found) is None or not self.decisions.take(DESTINATION.name, op):
            return None
        return self.plan.buffers[owner.results[position]]

    def _present(self, owner: ir.Operation, position: int) -> ir.Value | None:
        """The value that lies where result `position` of a loop or branch goes while its blocks run, if one does."""
        if owner.name == "stablehlo.while":
            return nested_blocks(owner)[1].arguments[position]
        return self.kept.get(owner.results[position])

    def _may_replace(self, present: ir.Value, op: ir.Operation, index: int) -> bool:
        """Tells whether result `index` of `op` may be written where `present` is, in the block of `op`."""
        last = terminator_of(op.block).operation
        if not self.live.is_used_after(present, op, last):
            return not self.live.is_used_at(present, op) or self._overwrites(op, index, present)
        return self._may_keep(present, op, index, last)

    def _may_keep(self, present: ir.Value, op: ir.Operation, index: int, last: ir.Operation) -> bool:
        """Tells whether the branches of `op` may find `present` where their result goes, and remember that they do.

        A branch that returns it has nothing to do then; the others replace it as soon as they do not need it any more.
        """
        if op.name == "stablehlo.while" or not nested_blocks(op):
            return False
        after = self.live.is_used_behind(present, op, last)
        moved = any(
            root(value) == present and position != index
            for branch in nested_blocks(op)
            for position, value in enumerate(terminator_of(branch).operands)
        )
        if after or moved or self.live.is_used_at(present, op):
            return False
        self.kept[op.results[index]] = present
        return True

    def _overwrites(self, op: ir.Operation, index: int, source: ir.Value) -> bool:
        """Tells whether result `index` may be written where `source` is, which `op` reads and nobody afterwards.

        Kernels say so themselves; a loop may that starts from it.
        """
        operands = self._roots(op)
        if operands.count(source) != 1 or self.live.is_read_in_pieces(source, op):
            return False
        position = operands.index(source)
        if op.name != "func.call":
            return op.name == "stablehlo.while" and position == index
        function = self.functions[callee_of(op)]
        return may_overwrite(function, position, index, self.functions)

    def _roots(self, op: ir.Operation) -> list[ir.Value]:
        """The values that the operands of an op are views of; nothing changes them while buffers are planned."""
        if op not in self._roots_of:
            self._roots_of[op] = [root(value) for value in op.operands]
        return self._roots_of[op]

    def _bytes(self, value: ir.Value) -> tuple[Expr, Expr]:
        """The bytes of a value, and these up to a multiple of the alignment; found once for a type.

        Those of a size that an iteration of a loop reads are as many as its limit may take: memory is planned before.
        """
        if value.type not in self._bytes_of:
            size = product(dims_of(value)) * bytes_of(element_type_of(value))
            exact = self.facts.simplify(self.facts.limits.largest(size))
            self._bytes_of[value.type] = exact, self.facts.simplify(round_up(exact, ALIGNMENT))
        return self._bytes_of[value.type]

    def _estimate(self, size: Expr) -> int:
        """`Facts.estimate`, found once."""
        if size not in self._estimates:
            self._estimates[size] = self.facts.estimate(size)
        return self._estimates[size]

    def _in_place(self, call: ir.Operation, index: int, result: ir.Value) -> Buffer | None:
        """The buffer of an input that this kernel may overwrite, and that no other of its results has taken."""
        taken = [self.plan.buffers[r].slot for r in list(call.results)[:index]]
        for source in dict.fromkeys(self._roots(call)):
            buffer = self.plan.buffers.get(source)
            if buffer is None or buffer.slot is None or buffer.slot in taken or isinstance(source.owner, ir.Block):
                continue
            can = self.live.dies_at(source, call) and self._overwrites(call, index, source)
            if can and self.decisions.take("in-place", call):
                return Buffer(buffer.bytes, slot=buffer.slot)
        return None

    def _free_slot(self, size: Expr, position: int, op: ir.Operation) -> Slot | None:
        free = [s for s in self.plan.slots if REUSE.match(lambda u: u, SlotUse(s, position))]
        if not free or not self.decisions.take(REUSE.name, op):
            return None
        wanted = self._estimate(size)
        estimates = [(self._estimate(s.size), s) for s in free]
        # Proofs are expensive: the smallest slot that may fit comes first, one that is smaller at a likely shape never.
        for estimate, slot in sorted(estimates, key=lambda pair: pair[0]):
            if estimate >= wanted and self.facts.prove(Relation.ge(slot.size, size)) is True:
                return self._part(slot, size) if estimate >= 2 * wanted else slot
        free = [s for s in free if s.segment == self.segment and s.whole is None]
        if not free:
            return None
        slot = max(free, key=lambda s: self._estimate(s.size))
        if self.facts.prove(Relation.ge(size, slot.size)) is True:
            slot.size = size
        else:
            slot.size = Expr.maximum(slot.size, size)
        return slot

    def _part(self, slot: Slot, size: Expr) -> Slot:
        """A part of a slot, which is cut unless it is cut already."""
        if slot.parts:
            return slot
        parts = slot.cut(size)
        self.plan.slots += parts
        return parts[0]


def assign_buffers(module: ir.Module, facts: Facts, decisions: Decisions) -> None:
    """Write into a fused module where each value lies, in place. `decisions` are those to use a buffer again."""
    block = entry_block(module)
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    variants = variants_in(module)
    plan = Planner(block, facts, functions, decisions, variants).run()
    offsets = plan.offsets()
    for op in (op for inner in all_blocks(block) for op in inner.operations):
        if op.operation.name in CONTROL | {"func.call"}:
            set_buffers(op, [_assigned(plan.buffers[r], offsets) for r in op.results])
    last = len(variants.regions) if variants is not None else max([0, *symbol_segments(module).values()])
    arenas = [plan.arena_bytes(k) for k in range(last + 1)]
    set_arenas(module.operation, arenas)
    if variants is not None:
        kept = arenas[0] + sum((plan.buffers[r].bytes for r in variants.results), Expr.const(0))
        limit = read_integer(module.operation.attributes[MEMORY_LIMIT])
        number = first_that_fits([kept + arena for arena in arenas[1:]], limit)
        module.operation.attributes[VARIANT] = dim_attr(number)


def _assigned(buffer: Buffer, offsets: dict[Slot, Expr]) -> buffers.Buffer:
    if buffer.slot is None:
        return buffers.ResultBuffer(buffer.result or 0)
    return buffers.ArenaBuffer(offsets[buffer.slot], buffer.bytes, buffer.slot.segment)
