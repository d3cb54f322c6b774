# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise values that a later kernel computes again from fewer values, instead of reading each from memory.

A gradient needs many values of the forward pass: x, x * x, 1 - tanh(x), ... Each that a kernel hands on to a later one
is written, kept and read. Most of them are a few instructions away from others. For two kernels, a minimum cut of the
elementwise ops of the first says which values to hand on: a value costs its bytes, once where it is written for another
reader anyway and twice otherwise, and an op costs its instructions in the later kernel (the min-cut partitioner of
PyTorch's AOTAutograd does this for a whole program, before fusion). The numbers stay the same, for the ops do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, GATHERS, INDEX_MAPS
from shlo_disc.shape_dialect.ops.access import Access, defining_op
from shlo_disc.shape_dialect.ops.code_size import code_size
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.transforms.cost import BYTES_PER_INSTRUCTION, Choice, Cost
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.body import reading_axes
from shlo_disc.transforms.fusion.cluster import Cluster, Graph
from shlo_disc.transforms.fusion.costs import instructions_of, is_made, likely, likely_bytes, readers_of
from shlo_disc.transforms.fusion.minimum_cut import ALWAYS, SINK, SOURCE, Network

RECOMPUTE: Pattern[Handover] = Pattern(
    "recompute-elementwise", "a kernel computes elementwise values again from fewer values of an earlier kernel"
)

_WALKING = frozenset(("loop", "row_reduce", "reduce"))
_MADE_BY = frozenset(("loop", "row_reduce"))

Axes = tuple[int | None, ...]


@dataclass(frozen=True)
class Read:
    """Operand `operand` of `reader`, a member of the later kernel; `axes`: the domain's axes of what it reads.

    position: where the reader stands in the block.
    """

    reader: ir.Operation
    operand: int
    axes: Axes | None
    position: int


@dataclass
class Handover:
    """The values that one kernel hands on to another one, and the cut that says which of them to keep.

    reads: how the later kernel reads each. fixed: those that it reads in another way as well, or at other indices.
    again: the values that it computes itself.
    """

    graph: Graph
    earlier: Cluster
    later: Cluster
    reads: dict[ir.Value, list[Read]]
    fixed: set[ir.Value]
    again: set[ir.Value] = field(default_factory=set)

    @property
    def op(self) -> ir.Operation:
        """The last op of the later one."""
        return self.later.members[-1]

    @property
    def moved(self) -> list[ir.Operation]:
        """The readers at other indices than their own, an op as often as it has such operands."""
        return [read.reader for reads in self.reads.values() for read in reads if read.reader.name in INDEX_MAPS]

    def choice(self) -> Choice:
        """The values that are computed again read from memory, or computed and what they are made of read."""
        sources = {source for value in self.again for source in _sources(self, value)}
        new = sources - self.again - self.fixed - set(self.reads)
        read = sum(_cost_of_reading(self, value) for value in self.again.intersection(self.reads))
        computing = sum(_cost_of_computing(self, value) for value in self.again) // BYTES_PER_INSTRUCTION
        return Choice(Cost(read=read), Cost(read=sum(_cost_of_reading(self, v) for v in new), instructions=computing))


def recompute_elementwise(block: ir.Block, graph: Graph, decisions: Decisions) -> None:
    """Have the clusters of a block compute what is cheaper to compute than to read, in place."""
    position = {op.operation: number for number, op in enumerate(block.operations)}
    for later in list(graph.clusters.values()):
        if later.kind not in _WALKING:
            continue
        for handover in list(_handovers(graph, later, position)):
            found = RECOMPUTE.match(_with_cut, handover)
            if found is not None and decisions.take(RECOMPUTE.name, found.op, found.choice):
                _Rewrite(found).run()


def _handovers(graph: Graph, later: Cluster, position: Mapping[ir.Operation, int]) -> Iterator[Handover]:
    """The handover of each earlier kernel to `later`."""
    found: dict[int, Handover] = {}
    for reader in later.members:
        for operand, access in _moved(reader):
            earlier = None if access.made_by is None else graph.of_op.get(access.made_by)
            if earlier is not None and earlier is not later and earlier.kind in _MADE_BY:
                handover = found.setdefault(earlier.number, Handover(graph, earlier, later, {}, set()))
                handover.reads.setdefault(access.value, []).append(Read(reader, operand, None, position[reader]))
        for operand, access in enumerate(_reads(graph, reader)):
            earlier = None if access.made_by is None else graph.of_op.get(access.made_by)
            if earlier is None or earlier is later or earlier.kind not in _MADE_BY:
                continue
            handover = found.setdefault(earlier.number, Handover(graph, earlier, later, {}, set()))
            axes = _domain_axes(reader, access, later)
            is_lost = access.axes is None or (axes is None and reader in later.axes and later.kind != "reduce")
            if is_lost or access.made_by not in earlier.axes:
                handover.fixed.add(access.value)
                continue
            handover.reads.setdefault(access.value, []).append(Read(reader, operand, axes, position[reader]))
    for handover in found.values():
        for value, reads in handover.reads.items():
            if len({read.axes for read in reads}) > 1 or _is_read_otherwise(handover, value):
                handover.fixed.add(value)
        yield handover


def _moved(reader: ir.Operation) -> Iterator[tuple[int, Access]]:
    """The operands that an op reads at other indices than its own, and could compute there. Tables are looked up."""
    if reader.name in INDEX_MAPS:
        for operand, value in enumerate(reader.operands):
            if operand > 0 or reader.name not in GATHERS:
                yield operand, Access(value, None, defining_op(value))


def _reads(graph: Graph, reader: ir.Operation) -> list[Access]:
    return graph.reads_of(reader) if reader.name in ELEMENTWISE or reader.name == "stablehlo.reduce" else []


def _domain_axes(reader: ir.Operation, access: Access, cluster: Cluster) -> Axes | None:
    """The axes of the cluster's domain that the axes of what is read stand for; None where it computes at others."""
    if reader not in cluster.axes or access.axes is None or cluster.kind == "reduce":
        return None
    own = reading_axes(reader, cluster.axes[reader], cluster)
    return tuple(None if axis is None else own[axis] for axis in access.axes)


def _is_read_otherwise(handover: Handover, value: ir.Value) -> bool:
    """Tells whether the later kernel reads a value not only at the index of an element, or not at its own one."""
    known = {read.reader for read in handover.reads[value]}
    return any(
        user not in known and handover.graph.of_op.get(user) is handover.later
        for user in readers_of(handover.graph, value)
    )


# ---- the cut ---------------------------------------------------------------------------------------------------------


def _with_cut(handover: Handover) -> Handover:
    """The handover with the ops that are cheaper to compute again than their results are to read."""
    network = Network()
    pending = list({*handover.reads, *handover.fixed})
    for value in pending:
        network.add(("kept", value), SINK, ALWAYS)
    seen: set[ir.Value] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        reading, computing = _cost_of_reading(handover, value), _cost_of_computing(handover, value)
        network.add(("made", value), ("kept", value), reading)
        network.add(SOURCE, ("made", value), computing)
        if computing < reading:
            sources = _sources(handover, value)
            for source in sources:
                network.add(("kept", source), ("made", value), ALWAYS)
            pending.extend(sources)
    behind = network.side_of_sink()
    handover.again = {value for value in seen if ("made", value) in behind}
    return handover


def _sources(handover: Handover, value: ir.Value) -> list[ir.Value]:
    """The values that the op of a value reads, constants aside."""
    op = defining_op(value)
    return [] if op is None else [read.value for read in handover.graph.reads_of(op) if not is_made(read)]


def _cost_of_reading(handover: Handover, value: ir.Value) -> int:
    """Bytes, once for a value that another kernel reads anyway, twice for one that is written for this reader."""
    graph, op = handover.graph, defining_op(value)
    if value in handover.fixed:
        return 0
    cluster = None if op is None else graph.of_op.get(op)
    both = (handover.earlier, handover.later)
    is_read = any(graph.of_op.get(user) not in both for user in readers_of(graph, root(value)))
    if cluster is handover.earlier:
        return likely_bytes(value) * (1 if is_read else 2)
    return likely_bytes(value) if is_read or graph.cluster_of(value) is None else ALWAYS


def _cost_of_computing(handover: Handover, value: ir.Value) -> int:
    """Bytes that are read in the time; `ALWAYS` where the later kernel is not to compute it.

    A value of few elements is computed for every element of the kernel's domain, and once for each op that moves it.
    """
    op = defining_op(value)
    if op is None or op.name not in ELEMENTWISE or value in handover.fixed:
        return ALWAYS
    graph, earlier = handover.graph, handover.earlier
    if op not in earlier.axes or any(read.axes is None for read in graph.reads_of(op)):
        return ALWAYS
    domain = max(dims_of(value), handover.later.domain, key=lambda dims: likely(product(dims)))
    times = handover.later.walks * max(1, len(set(handover.moved)))
    return BYTES_PER_INSTRUCTION * instructions_of(op, element_type_of(value), domain) * times


@RECOMPUTE.requires("there is something to compute again")
def _saves(found: Handover) -> bool:
    return bool(found.again)


@RECOMPUTE.requires("the kernel does not become too long")
def _stays_short(found: Handover) -> bool:
    added = sum(code_size(op, outlined=True) for op in map(defining_op, found.again) if op is not None)
    added *= max(1, len(found.moved))
    return (found.later.code_size + added) * found.later.walks <= policy().kernel_instructions


# ---- the rewrite -----------------------------------------------------------------------------------------------------


class _Rewrite:
    """Has the later kernel of a handover compute `again` itself."""

    def __init__(self, handover: Handover):
        self.handover = handover
        self.graph = handover.graph
        self.made: dict[tuple[ir.Value, Axes | None], ir.Value] = {}

    def run(self) -> None:
        """Change the readers, in the order of the program, and erase what nothing reads any more."""
        again = self.handover.again
        reads = [(value, read) for value, reads in self.handover.reads.items() if value in again for read in reads]
        for value, read in sorted(reads, key=lambda pair: pair[1].position):
            with ir.InsertionPoint(read.reader):
                new = self._rebased(read.reader.operands[read.operand], value, self._computed(value, read.axes))
            self.graph.set_operand(read.reader, read.operand, new)
        self.graph.erase_unread(self.handover.earlier)

    def _computed(self, value: ir.Value, axes: Axes | None) -> ir.Value:
        """The value in the later kernel, whose domain has the axes `axes` of it."""
        op = defining_op(value)
        if op is None or value not in self.handover.again:
            return value
        if (value, axes) not in self.made:
            operands = list(op.operands)
            for number, read in enumerate(self.graph.reads_of(op)):
                inner = None if axes is None or read.axes is None else tuple(_at(axes, a) for a in read.axes)
                new = self._computed(read.value, inner)
                operands[number] = self._rebased(operands[number], read.value, new)
            clone = op.clone()
            for number, operand in enumerate(operands):
                clone.operands[number] = operand
            clusters = map(self.graph.cluster_of, operands)
            self.graph.add(self.handover.later, clone, axes, [c for c in clusters if c is not None])
            self.made[value, axes] = clone.results[list(op.results).index(value)]
        return self.made[value, axes]

    def _rebased(self, value: ir.Value, old: ir.Value, new: ir.Value) -> ir.Value:
        """`value`, which free ops make of `old`, made of `new`."""
        op = defining_op(value)
        if old == new or value == old or op is None:
            return new if value == old else value
        source = self._rebased(op.operands[0], old, new)
        clone = op.clone()  # behind its source
        clone.operands[0] = source
        return clone.results[0]


def _at(axes: Axes, axis: int | None) -> int | None:
    return None if axis is None else axes[axis]
