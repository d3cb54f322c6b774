# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops become one kernel.

One walk in program order. An op joins the cluster of a producer when its sizes line up with that cluster's iteration
space (equal symbols, whatever their values), and clusters that meet in one op are merged. Reductions along trailing
axes turn a cluster into rows and columns, so that a softmax or a layer norm with all that surrounds it is one kernel.
Free ops (broadcast, reshape, iota, scalar constants) belong to no cluster: each reader has its own copy.
"""

from __future__ import annotations

from shlo_disc.mlir import ir
from shlo_disc.shape_dialect.data_sizes import bound_symbols
from shlo_disc.shape_dialect.op_sets import CONTROL, ELEMENTWISE
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.regions import all_blocks, nested_blocks
from shlo_disc.shape_dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.windows import scanned_axis, window_of
from shlo_disc.transforms.fusion.access import (
    GENERATORS,
    RESHAPES,
    Access,
    defining_op,
    identity_axes,
    is_direct_convolution,
    is_free,
    operand_accesses,
    resolve,
)
from shlo_disc.transforms.fusion.body import member_reads
from shlo_disc.transforms.fusion.budget import Budget
from shlo_disc.transforms.fusion.cluster import Cluster, Graph
from shlo_disc.transforms.fusion.recurrence import find_recurrence
from shlo_disc.transforms.fusion.selection import selecting_sort

DomainMap = dict[int, int]
"""Axis of an op -> axis of a cluster's domain."""


_OWN_KINDS = frozenset(
    ("bind", "control", "convolution", "dot", "library", "nonzero", "recurrence", "scan", "scatter",
     "select_and_scatter", "sort", "top_k", "update")
)  # fmt: skip
"""Kinds of cluster that no op joins."""

_WINDOWED = frozenset(("stablehlo.convolution", "stablehlo.reduce_window", "stablehlo.select_and_scatter"))


class Grouping:
    """The walk; its result is `graph`."""

    def __init__(self, budget: Budget) -> None:
        self.graph = Graph()
        self.budget = budget

    def visit(self, op: ir.Operation) -> None:
        """Place one op of the block."""
        if op.name in ("func.return", "stablehlo.return") or is_free(op) or op.name in GENERATORS:
            return
        if op.name == "disc.bind":
            self.graph.bind(op, bound_symbols(op), self.producers(op))
            return
        if op.name in CONTROL or op.name == "stablehlo.custom_call":
            kind = "control" if op.name in CONTROL else "library"
            kind = "recurrence" if find_recurrence(op) is not None and self.budget.take() else kind
            self.graph.add(self.graph.create(kind, ()), op, None, self.producers(op))
            return
        if op.name in ELEMENTWISE:
            self._elementwise(op)
        elif op.name == "stablehlo.reduce":
            self._reduce(op)
        elif op.name == "stablehlo.dot_general":
            self._alone(op, "dot")
        elif self._transposes_a_dot(op) or selecting_sort(op) is not None:
            self._join_producer(op)
        elif op.name in ("stablehlo.scatter", "stablehlo.sort"):
            self._absorb_producers(op, self._alone(op, op.name.removeprefix("stablehlo.")))
        elif op.name in _WINDOWED:
            self._windowed(op)
        elif op.name == "disc.nonzero":
            self._alone(op, "nonzero")
        elif op.name == "stablehlo.dynamic_update_slice" and _is_overwritable(op.operands[0]):
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
            cluster = self._cluster_of(value)
            if cluster is not None:
                found[cluster.number] = cluster
        return list(found.values())

    def _cluster_of(self, value: ir.Value) -> Cluster | None:
        op = defining_op(value)
        while op is not None and op not in self.graph.of_op and is_free(op) and op.operands:
            op = defining_op(op.operands[0])
        return None if op is None else self.graph.of_op.get(op)

    def _alone(self, op: ir.Operation, kind: str) -> Cluster:
        cluster = self.graph.create(kind, dims_of(op.results[0]))
        self.graph.add(cluster, op, identity_axes(op.results[0]), self.producers(op))
        return cluster

    # ---- elementwise ------------------------------------------------------------------------------------------

    def _elementwise(self, op: ir.Operation) -> None:
        accesses = operand_accesses(op)
        candidates = [(c, m) for c, m in self._candidates(op, accesses) if self._fits(op, c, m)]
        candidates.sort(key=lambda pair: (-len(pair[0].domain), -pair[0].columns, -pair[0].number))
        producers = self.producers(op)
        for cluster, mapping in candidates:
            if self.graph.can_add(cluster, producers) and self.budget.take():
                axes = tuple(mapping.get(i) for i in range(len(dims_of(op.results[0]))))
                self.graph.add(cluster, op, axes, producers)
                self._merge_others(op, cluster, mapping, candidates)
                return
        self._alone(op, "loop")

    def _candidates(self, op: ir.Operation, accesses: list[Access]) -> list[tuple[Cluster, DomainMap]]:
        """For each producing cluster, where the op's axes lie in its domain (partial: only the axes that are read).

        A cluster that is read in two ways, or through a view of its buffer, has to be finished before this op starts.
        """
        found: dict[int, tuple[Cluster, DomainMap]] = {}
        finished = self._read_through_views(accesses)
        for access in accesses:
            producer = defining_op(access.value)
            cluster = None if producer is None else self.graph.of_op.get(producer)
            if cluster is None or producer is None:
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

    def _read_through_views(self, accesses: list[Access]) -> set[int]:
        """The clusters whose results are read through a reshape that regroups sizes."""
        found = set()
        for access in accesses:
            op = defining_op(access.value)
            cluster = self._cluster_of(access.value)
            if cluster is not None and op is not None and op not in self.graph.of_op:
                found.add(cluster.number)
        return found

    def _fits(self, op: ir.Operation, cluster: Cluster, mapping: DomainMap) -> bool:
        """Complete `mapping` in place; False when the op's sizes do not line up with the cluster's domain."""
        if cluster.kind in _OWN_KINDS or not mapping and cluster.domain:
            return False
        dims = dims_of(op.results[0])
        uncovered = [i for i, d in enumerate(dims) if d.constant != 1 and i not in mapping]
        targets = set(mapping.values())
        if uncovered:
            open_axes = [a for a in range(cluster.rows, len(cluster.domain)) if a not in targets]
            open_axes = [a for a in open_axes if cluster.domain[a].constant != 1]
            if len(open_axes) != len(uncovered):
                return False
            mapping.update(zip(uncovered, open_axes, strict=True))
        order = [mapping[i] for i in sorted(mapping)]
        if order != sorted(set(order)) or any(dims[i] != cluster.domain[a] for i, a in mapping.items()):
            return False
        return self._covers(cluster, set(mapping.values()))

    @staticmethod
    def _covers(cluster: Cluster, targets: set[int]) -> bool:
        """All of the domain, or exactly its rows; sizes of 1 do not count."""
        needed = {a for a, d in enumerate(cluster.domain) if d.constant != 1}
        targets = targets & needed
        rows = {a for a in needed if a < cluster.rows}
        return targets == needed or (cluster.columns > 0 and targets == rows)

    def _merge_others(
        self,
        op: ir.Operation,
        cluster: Cluster,
        mapping: DomainMap,
        candidates: list[tuple[Cluster, DomainMap]],
    ) -> None:
        for other, other_mapping in candidates:
            if other is cluster or other.number not in self.graph.clusters:
                continue
            translation = self._translation(cluster, mapping, other, other_mapping)
            if translation is None or self._moves_reduced_values(cluster, other):
                continue
            places = {cluster.number: {a: a for a in range(len(cluster.domain))}, other.number: translation}
            if not self._reads_in_place(cluster, other, places) or not self._reads_in_place(other, cluster, places):
                continue
            if self.graph.can_merge(cluster, other) and self.budget.take():
                axes = {m: tuple(None if a is None else translation[a] for a in t) for m, t in other.axes.items()}
                self._take_columns(cluster, other)
                self.graph.merge(cluster, other, axes)

    def _translation(
        self, cluster: Cluster, mapping: DomainMap, other: Cluster, other_mapping: DomainMap
    ) -> dict[int, int] | None:
        """Domain axes of `other` -> domain axes of `cluster`, when the two iterate over one space."""
        if not other.is_aligned or not {other.kind, cluster.kind} <= {"loop", "row_reduce"}:
            return None
        needed = {a for a, d in enumerate(other.domain) if d.constant != 1}
        translation = {other_mapping[i]: a for i, a in mapping.items() if other_mapping.get(i) in needed}
        if set(translation) != needed:
            return None
        translation.update({a: -1 for a, d in enumerate(other.domain) if d.constant == 1})
        if [translation[a] for a in sorted(needed)] != sorted(translation[a] for a in needed):
            return None
        targets = {translation[a] for a in needed}
        if other.columns:
            other_columns = {translation[a] for a in needed if a >= other.rows}
            all_columns = {a for a, d in enumerate(cluster.domain) if d.constant != 1 and a >= cluster.rows}
            whole = targets == {a for a, d in enumerate(cluster.domain) if d.constant != 1}
            if not whole or (cluster.columns and other_columns != all_columns):
                return None
            return {a: (None if t == -1 else t) for a, t in translation.items()}  # type: ignore[misc]
        if not self._covers(cluster, targets):
            return None
        return {a: (None if t == -1 else t) for a, t in translation.items()}  # type: ignore[misc]

    def _reads_in_place(self, reader: Cluster, source: Cluster, places: dict[int, dict[int, int]]) -> bool:
        """Whether `reader` reads the values of `source` only where both stand when they are one.

        Ops that move data compute what they read at the index where they read it.

        `places`: for each of the two, by number, the axis that each axis of its domain becomes.
        """
        if not self.graph.depends(reader, source):
            return True
        computing = (op for op in reader.axes if op.name in ELEMENTWISE or op.name == "stablehlo.reduce")
        for op in computing:
            for access, reader_axes in member_reads(op, reader.axes[op], reader):
                producer = defining_op(access.value)
                if self._cluster_of(access.value) is not source or producer is None:
                    continue
                if access.axes is None or producer not in source.axes:
                    return False
                for axis, there in zip(access.axes, source.axes[producer], strict=True):
                    here = None if axis is None else reader_axes[axis]
                    if here is not None and there is not None and source.domain[there].constant != 1:
                        if places[reader.number].get(here) != places[source.number].get(there):
                            return False
        return True

    def _moves_reduced_values(self, cluster: Cluster, other: Cluster) -> bool:
        """Whether the two as one would read, at another index than the row's own, what depends on a reduction.

        A row kernel holds the reductions of one row at a time, so the reader has to wait for all rows.
        """
        if not cluster.columns and not other.columns:
            return False
        axes = cluster.axes | other.axes
        members = {*cluster.members, *other.members}
        movers = [m for m in members if m not in axes or m.name not in ELEMENTWISE and m.name != "stablehlo.reduce"]
        return any(_depends_on_reduction(m, members) for m in movers)

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
        if not trailing or not reduced:
            self._non_trailing_reduce(op)
            return
        producers = self.producers(op)
        for cluster, columns, axes in self._row_candidates(inputs, dims, len(reduced)):
            if self.graph.can_add(cluster, producers) and self.budget.take():
                cluster.kind, cluster.columns = "row_reduce", columns
                self.graph.add(cluster, op, axes, producers)
                return
        cluster = self.graph.create("row_reduce", dims, len(reduced))
        self.graph.add(cluster, op, tuple(range(len(dims) - len(reduced))), producers)

    def _row_candidates(
        self, inputs: list[ir.Value], dims: Dims, reduced: int
    ) -> list[tuple[Cluster, int, tuple[int | None, ...]]]:
        """Clusters that already compute an input over the whole domain and have, or may take, these columns."""
        found = []
        axes = tuple(range(len(dims)))
        for value in inputs:
            access = resolve(value, axes)
            producer = defining_op(access.value)
            cluster = None if producer is None else self.graph.of_op.get(producer)
            if cluster is None or producer is None or producer not in cluster.axes or access.axes is None:
                continue
            if cluster.kind not in ("loop", "row_reduce"):
                continue
            target: dict[int, int | None] = {}
            for axis, domain_axis in zip(access.axes, cluster.axes[producer], strict=True):
                if axis is not None:
                    target[axis] = domain_axis
            columns = self._columns_of(cluster, dims, reduced, target)
            if columns is not None:
                found.append((cluster, columns, tuple(target.get(i) for i in range(len(dims) - reduced))))
        return found

    @staticmethod
    def _columns_of(cluster: Cluster, dims: Dims, reduced: int, target: dict[int, int | None]) -> int | None:
        needed = [a for a, d in enumerate(cluster.domain) if d.constant != 1]
        mapped = [target.get(i) for i, d in enumerate(dims) if d.constant != 1]
        if mapped != needed:
            return None
        column_axes = [target[i] for i in range(len(dims) - reduced, len(dims)) if dims[i].constant != 1]
        first = min((a for a in column_axes if a is not None), default=None)
        if first is None:
            return None
        columns = len(cluster.domain) - first
        if cluster.columns and {a for a in needed if a >= cluster.rows} != set(column_axes):
            return None
        return cluster.columns or columns

    def _non_trailing_reduce(self, op: ir.Operation) -> None:
        cluster = self._alone(op, "reduce")
        self._absorb_producers(op, cluster)

    def _windowed(self, op: ir.Operation) -> None:
        """Windows overlap, so their operands are computed before; only a cumulative op reads each element once."""
        if op.name == "stablehlo.convolution":
            self._alone(op, "convolution" if is_direct_convolution(op) else "window")
        elif op.name == "stablehlo.select_and_scatter":
            self._alone(op, "select_and_scatter")
        elif scanned_axis(window_of(op.opview), dims_of(op.operands[0])) is None:
            self._alone(op, "window")
        else:
            self._absorb_producers(op, self._alone(op, "scan"))

    # ---- data movement ----------------------------------------------------------------------------------------

    def _data_movement(self, op: ir.Operation) -> None:
        cluster = self._alone(op, "loop")
        self._absorb_producers(op, cluster)

    def _absorb_producers(self, op: ir.Operation, cluster: Cluster) -> None:
        """Recompute single-use producers at this op's own index, so that they need no buffer."""
        for position, value in enumerate(op.operands):
            if position == 0 and op.name in ("stablehlo.gather", "stablehlo.dynamic_gather"):
                continue
            if position == 0 and cluster.kind == "update":
                continue
            producer = self._cluster_of(value)
            if producer is None or producer is cluster or producer.kind != "loop":
                continue
            if self._only_feeds(producer, op) and self.graph.can_merge(cluster, producer) and self.budget.take():
                self.graph.merge(cluster, producer, {})

    def _only_feeds(self, producer: Cluster, op: ir.Operation) -> bool:
        members = set(producer.members)
        return all(_users_are_within(m, members | {op}) for m in producer.members)

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


def _depends_on_reduction(op: ir.Operation, members: set[ir.Operation]) -> bool:
    """Whether a reduction among `members` is above `op`, through members and free ops."""
    pending = [op]
    seen: set[ir.Operation] = set()
    while pending:
        for value in pending.pop().operands:
            producer = defining_op(value)
            if producer is None or producer in seen or not (producer in members or is_free(producer)):
                continue
            if producer.name == "stablehlo.reduce":
                return True
            seen.add(producer)
            pending.append(producer)
    return False


def _is_overwritable(value: ir.Value) -> bool:
    """Whether a value probably lies in a buffer that nothing else needs: what a loop carries, a result of its own."""
    op = defining_op(value)
    while op is not None and op.name in RESHAPES:
        value = op.operands[0]
        op = defining_op(value)
    if op is None:
        return value.owner.owner.operation.name in CONTROL
    return op.name in CONTROL | {"stablehlo.dot_general", "stablehlo.scatter", "stablehlo.sort"}


def _users_are_within(op: ir.Operation, allowed: set[ir.Operation]) -> bool:
    """Every use of an op's results, looking through free ops, is by an op of `allowed`."""
    for result in op.results:
        for use in result.uses:
            user = use.owner.operation
            if user in allowed:
                continue
            if not is_free(user) or not _users_are_within(user, allowed):
                return False
    return True


def group(block: ir.Block, budget: Budget) -> Graph:
    """Cluster the ops of one block: the entry block, or one of a loop or branch."""
    grouping = Grouping(budget)
    for op in block.operations:
        grouping.visit(op.operation)
    return grouping.graph
