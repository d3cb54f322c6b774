# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grouping of ops that become one kernel.

One walk in program order. An op joins the cluster of a producer when its sizes line up with that cluster's iteration
space (equal symbols, whatever their values), and clusters that meet in one op are merged. Reductions along trailing
axes turn a cluster into rows and columns, so that a softmax or a layer norm with all that surrounds it is one kernel.
Free ops (broadcast, reshape, iota, scalar constants) belong to no cluster: each reader has its own copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from shlo_disc.shape_dialect.compile_state import current_compile, policy
from shlo_disc.shape_dialect.dialect.library import is_narrow_product
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BARRIER, CONTROL, ELEMENTWISE, GATHERS, GENERATORS, RESHAPES
from shlo_disc.shape_dialect.ops.access import Access, defining_op, identity_axes
from shlo_disc.shape_dialect.ops.data_sizes import bound_symbols
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.convolutions import is_direct_convolution
from shlo_disc.transforms.cost import Choice
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.cluster import Cluster, Graph
from shlo_disc.transforms.fusion.costs import Group, joining, walked
from shlo_disc.transforms.fusion.cumulative import cumulative
from shlo_disc.transforms.fusion.grouping_patterns import (
    ABSORB,
    JOIN,
    JOIN_FIRST,
    MERGE,
    REDUCE,
    Absorb,
    DomainMap,
    Join,
    Merge,
    RowReduce,
)
from shlo_disc.transforms.fusion.recompute import recompute_elementwise
from shlo_disc.transforms.fusion.recurrence import find_recurrence
from shlo_disc.transforms.fusion.selection import selecting_sort
from shlo_disc.transforms.fusion.siblings import merge_siblings

_APART = {BARRIER: "barrier", "stablehlo.custom_call": "library"}
"""Kinds of ops that say themselves what becomes of their operands."""

_WINDOWED = frozenset(("stablehlo.convolution", "stablehlo.reduce_window", "stablehlo.select_and_scatter"))


MANY_PIECES = 8
"""Pieces from which on a concatenation is a kernel that goes through them one by one."""


class Grouping:
    """The walk; its result is `graph`."""

    def __init__(self, decisions: Decisions) -> None:
        self.graph = Graph()
        self.decisions = decisions

    def visit(self, op: ir.Operation) -> None:
        """Place one op of the block."""
        name = op.name
        if name in ("func.return", "stablehlo.return") or name in GENERATORS or self.graph.is_free(op):
            return
        if name in ELEMENTWISE:
            self._elementwise(op)
        elif name == "disc.bind":
            self.graph.bind(op, bound_symbols(op), self.producers(op))
        elif policy().product_tile and is_narrow_product(op):
            self._alone(op, "dot")
        elif name in CONTROL or name in _APART:
            kind = _APART.get(name, "control")
            kind = "recurrence" if find_recurrence(op) is not None and self.decisions.take("recurrence", op) else kind
            self.graph.add(self.graph.create(kind, ()), op, None, self.producers(op))
        else:
            self._kernel(op, name)

    def _kernel(self, op: ir.Operation, name: str) -> None:
        """Place an op that computes, of which there is more than elementwise."""
        if name == "stablehlo.reduce":
            self._reduce(op)
        elif name == "stablehlo.dot_general":
            self._alone(op, "dot")
        elif self._transposes_a_dot(op) or selecting_sort(op) is not None:
            self._join_producer(op)
        elif name in ("stablehlo.scatter", "stablehlo.sort"):
            self._absorb_producers(op, self._alone(op, name.removeprefix("stablehlo.")))
        elif name in _WINDOWED:
            self._windowed(op)
        elif name == "disc.nonzero":
            self._alone(op, "nonzero")
        elif name == "stablehlo.dynamic_update_slice" and _is_overwritable(op.operands[0]):
            self._absorb_producers(op, self._alone(op, "update"))
        else:
            self._data_movement(op)

    def producers(self, op: ir.Operation) -> list[Cluster]:
        """The clusters that an op's operands, and what its regions use from outside, come from, through free ops.

        Those that read its sizes from data are among them.
        """
        found = {c.number: c for c in self.graph.readers_of_sizes(op)}
        inner = (i for nested in nested_blocks(op) for b in all_blocks(nested) for i in b.operations)
        for value in [*op.operands, *(v for i in inner for v in i.operands)]:
            cluster = self.graph.cluster_of(value)
            if cluster is not None:
                found[cluster.number] = cluster
        return list(found.values())

    def _takes(
        self, pattern: Pattern[Any], op: ir.Operation, cluster: Cluster, others: Sequence[ir.Operation] = ()
    ) -> bool:
        """Tells whether an op, or other ops that it reads, may become members of a cluster; it is counted."""

        def choice() -> Choice:
            return joining(self.graph, Group.of(cluster), Group(others or (op,), walked(cluster)))

        return self.decisions.take(pattern.name, op, choice)

    def _alone(self, op: ir.Operation, kind: str) -> Cluster:
        cluster = self.graph.create(kind, dims_of(op.results[0]))
        self.graph.add(cluster, op, identity_axes(op.results[0]), self.producers(op))
        return cluster

    # ---- elementwise ------------------------------------------------------------------------------------------

    def _elementwise(self, op: ir.Operation) -> None:
        producers = self.producers(op)
        candidates = self._candidates(self.graph.reads_of(op))
        dims = dims_of(op.results[0])
        joins = [Join(op, dims, cluster, read, producers, self.graph) for cluster, read in candidates]
        joins.sort(key=lambda j: (-len(j.cluster.domain), -j.cluster.columns, -j.cluster.number))
        fitting = [j for j in joins if JOIN.match(lambda j: j, j) is not None]
        for join in fitting:
            if JOIN_FIRST.match(lambda j: j, join) is not None and self._takes(JOIN, op, join.cluster):
                axes = tuple(join.mapping.get(i) for i in range(len(join.dims)))
                self.graph.add(join.cluster, op, axes, producers)
                self._merge_others(op, join, fitting)
                return
        self._alone(op, "loop")

    def _candidates(self, accesses: list[Access]) -> list[tuple[Cluster, DomainMap]]:
        """For each producing cluster, where the op's axes lie in its domain (partial: only the axes that are read).

        A cluster that is read in two ways, or through a view of its buffer, has to be finished before this op starts.
        """
        found: dict[int, tuple[Cluster, DomainMap]] = {}
        finished: set[int] = set()
        for access in accesses:
            producer = access.made_by
            if producer is None:
                continue
            cluster = self.graph.of_op.get(producer)
            if cluster is None:
                viewed = self.graph.cluster_of(access.value)  # through a reshape that regroups sizes
                finished |= set() if viewed is None else {viewed.number}
                continue
            if access.axes is None or producer not in cluster.axes:
                finished.add(cluster.number)
                continue
            mapping = {
                axis: target
                for axis, target in zip(access.axes, cluster.axes[producer], strict=True)
                if axis is not None and target is not None
            }
            known = found.get(cluster.number)
            if known is None:
                found[cluster.number] = (cluster, mapping)
            elif any(known[1].get(i, a) != a for i, a in mapping.items()):
                finished.add(cluster.number)
            else:
                known[1].update(mapping)
        return [pair for number, pair in found.items() if number not in finished]

    def _merge_others(self, op: ir.Operation, join: Join, joins: Sequence[Join]) -> None:
        """Merge the other clusters that an op reads into the one that it has joined."""
        cluster = join.cluster
        for joined in joins:
            other = joined.cluster
            if other is cluster or other.number not in self.graph.clusters:
                continue
            candidate = Merge(cluster, join.mapping, other, joined.mapping, self.graph)
            merge = MERGE.match(lambda m: m, candidate)
            if merge is None or not self._takes(MERGE, op, cluster, other.members):
                continue
            self._take_columns(cluster, other)
            self.graph.merge(cluster, other, merge.axes)

    @staticmethod
    def _take_columns(cluster: Cluster, other: Cluster) -> None:
        if other.columns and not cluster.columns:
            kept = sum(1 for d in other.domain[other.rows :] if d.constant != 1)
            columns = 0
            while kept:
                columns += 1
                kept -= cluster.domain[len(cluster.domain) - columns].constant != 1
            cluster.columns = columns
            cluster.kind = other.kind

    # ---- reductions -------------------------------------------------------------------------------------------

    def _reduce(self, op: ir.Operation) -> None:
        inputs = list(op.operands)[: len(op.operands) // 2]
        dims = dims_of(inputs[0])
        reduced = sorted(integers(op.attributes["dimensions"]))
        trailing = reduced == list(range(len(dims) - len(reduced), len(dims)))
        if not trailing or all(dims[axis].constant == 1 for axis in reduced):
            self._non_trailing_reduce(op)  # along sizes of 1, it has no columns that others could share
            return
        producers = self.producers(op)
        for value in inputs:
            found = REDUCE.match(lambda v: RowReduce.of(op, v, len(reduced), producers, self.graph), value)
            if found is not None and self._takes(REDUCE, op, found.cluster):
                found.cluster.kind, found.cluster.columns = "row_reduce", found.columns
                self.graph.add(found.cluster, op, found.axes, producers)
                return
        cluster = self.graph.create("row_reduce", dims, len(reduced))
        self.graph.add(cluster, op, tuple(range(len(dims) - len(reduced))), producers)

    def _non_trailing_reduce(self, op: ir.Operation) -> None:
        cluster = self._alone(op, "reduce")
        self._absorb_producers(op, cluster)

    def _windowed(self, op: ir.Operation) -> None:
        """Windows overlap, so their operands are computed before; only a cumulative op reads each element once."""
        if op.name == "stablehlo.convolution":
            self._alone(op, "convolution" if is_direct_convolution(op) else "window")
        elif op.name == "stablehlo.select_and_scatter":
            self._alone(op, "select_and_scatter")
        elif cumulative(op.opview) is None:
            self._alone(op, "window")
        else:
            self._absorb_producers(op, self._alone(op, "scan"))

    # ---- data movement ----------------------------------------------------------------------------------------

    def _data_movement(self, op: ir.Operation) -> None:
        is_long = op.name == "stablehlo.concatenate" and len(op.operands) >= MANY_PIECES
        cluster = self._alone(op, "concatenate" if is_long else "loop")
        self._absorb_producers(op, cluster)

    def _absorb_producers(self, op: ir.Operation, cluster: Cluster) -> None:
        """Recompute single-use producers at this op's own index, so that they need no buffer."""
        times = Counter(producer.number for v in op.operands if (producer := self.graph.cluster_of(v)) is not None)
        for position, value in enumerate(op.operands):
            if position == 0 and op.name in GATHERS:
                continue
            if position == 0 and cluster.kind == "update":
                continue
            producer = self.graph.cluster_of(value)
            if producer is None or producer is cluster:
                continue
            candidate = Absorb(op, cluster, producer, times[producer.number])
            found = ABSORB.match(lambda a: a, candidate)
            if found is not None and self._takes(ABSORB, op, cluster, producer.members):
                self.graph.merge(cluster, producer, {}, candidate.times)

    # ---- dots and sorts -----------------------------------------------------------------------------------------

    def _transposes_a_dot(self, op: ir.Operation) -> bool:
        producer = defining_op(op.operands[0]) if op.name == "stablehlo.transpose" else None
        if producer is None or producer.name != "stablehlo.dot_general":
            return False
        return len(list(producer.results[0].uses)) == 1

    def _join_producer(self, op: ir.Operation) -> None:
        """The dot writes its result transposed, the sort only the beginning of its."""
        cluster = self.graph.of_op[defining_op(op.operands[0])]  # type: ignore[index]
        cluster.domain = dims_of(op.results[0])
        cluster.kind = "top_k" if cluster.kind == "sort" else cluster.kind
        self.graph.add(cluster, op, identity_axes(op.results[0]), [])


def _is_overwritable(value: ir.Value) -> bool:
    """Tells whether a value probably has a buffer of its own: a loop-carried value, or a result."""
    op = defining_op(value)
    while op is not None and op.name in RESHAPES:
        value = op.operands[0]
        op = defining_op(value)
    if op is None:
        return value.owner.owner.operation.name in CONTROL
    return op.name in CONTROL | {"stablehlo.dot_general", "stablehlo.scatter", "stablehlo.sort"}


def group(block: ir.Block, decisions: Decisions) -> Graph:
    """Cluster the ops of one block: the entry block, or one of a loop or branch."""
    grouping = Grouping(decisions)
    for op in block.operations:
        grouping.visit(op.operation)
    recompute_elementwise(block, grouping.graph, decisions)
    merge_siblings(block, grouping.graph, decisions)
    if current_compile().is_strict:
        block.owner.operation.verify()  # before its ops go: MLIR does not notice uses of those
    return grouping.graph
