# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters: sets of ops that become one kernel, and the dependency graph that keeps them free of cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE
from shlo_disc.shape_dialect.ops.access import Access, defining_op, is_free, operand_accesses
from shlo_disc.shape_dialect.ops.code_size import code_size
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks, nested_blocks
from shlo_disc.shape_dialect.ops.reducers import is_reorderable
from shlo_disc.shape_dialect.utils.windows import window_sizes


@dataclass
class Cluster:
    """A kernel-to-be.

    `domain` is the iteration space; its last `columns` sizes are reduced along (0 for a loop). `axes` says for each
    member which axis of the domain each of its result's sizes runs along; members without an entry are read at other
    indices than the domain's and are recomputed there.

    code_size: the instructions for an element, with what is computed again at other indices. reductions: how many
    reductions are above each member, one after the other; a row is walked once more than the deepest has.
    """

    number: int
    kind: str
    domain: Dims
    columns: int = 0
    members: list[ir.Operation] = field(default_factory=list)
    axes: dict[ir.Operation, tuple[int | None, ...]] = field(default_factory=dict)
    code_size: int = 0
    reductions: dict[ir.Operation, int] = field(default_factory=dict)
    walks: int = 1

    @property
    def rows(self) -> int:
        """The number of leading axes that are not reduced."""
        return len(self.domain) - self.columns

    @property
    def is_aligned(self) -> bool:
        """Every member is computed at the domain's own index."""
        return len(self.axes) == len(self.members)


class Graph:
    """The dependences between clusters, transitive, as bit sets (after the DAG merging of XLA and BladeDISC).

    `_needed` has the clusters that any other has needed at some time: changes of the others concern none but them.
    `binds` names, for each symbol that is read from data, the cluster that reads it.
    """

    def __init__(self) -> None:
        self.clusters: dict[int, Cluster] = {}
        self.of_op: dict[ir.Operation, Cluster] = {}
        self._free: dict[ir.Operation, bool] = {}
        self._reads: dict[ir.Operation, list[Access]] = {}
        self._in_order: dict[ir.Operation, bool] = {}
        self._needs: dict[int, int] = {}
        self._needed = 0
        self.binds: dict[str, Cluster] = {}

    def is_free(self, op: ir.Operation) -> bool:
        """`access.is_free`, found once. Only for ops that the graph was made of, which stay until all are outlined."""
        known = self._free.get(op)
        if known is None:
            known = self._free[op] = is_free(op)
        return known

    def reads_of(self, op: ir.Operation) -> list[Access]:
        """The values that an elementwise op or a reduction reads, found once, as `is_free` is."""
        known = self._reads.get(op)
        if known is None:
            known = self._reads[op] = operand_accesses(op)
        return known

    def goes_in_order(self, op: ir.Operation) -> bool:
        """Tells whether a reduction has to combine elements one after the other, found once."""
        if op not in self._in_order:
            self._in_order[op] = not is_reorderable(op.opview)
        return self._in_order[op]

    def orders_of(self, members: Iterable[ir.Operation]) -> set[bool]:
        """The answers of `goes_in_order` for the reductions among some ops."""
        return {self.goes_in_order(op) for op in members if op.name == "stablehlo.reduce"}

    def set_operand(self, op: ir.Operation, number: int, value: ir.Value) -> None:
        """Change an operand of a member. The hash of an op is made of its operands, so it is entered anew."""
        cluster = self.of_op.pop(op)
        axes, reductions = cluster.axes.pop(op, None), cluster.reductions.pop(op)
        self._free.pop(op, None)
        self._reads.pop(op, None)
        self._in_order.pop(op, None)
        op.operands[number] = value
        self.of_op[op], cluster.reductions[op] = cluster, reductions
        if axes is not None:
            cluster.axes[op] = axes

    def erase_unread(self, cluster: Cluster) -> None:
        """Erase the elementwise members of a cluster that nothing reads, and what only they have read in their block.

        Free ops that nothing reads do not count. A cluster whose last member goes is none any more.
        """
        pending, block = list(cluster.members), cluster.members[0].block
        while pending:
            op = pending.pop()
            views = self._unread_views(op) if op.name in ELEMENTWISE or self.is_free(op) else None
            if views is None:
                continue
            sources = [s for s in map(defining_op, op.operands) if s is not None and s.block == block]
            for gone in (*views, op):  # an op that is erased must not be looked at again
                pending = [other for other in pending if other != gone]
                self._erase(gone)
            pending += [source for source in dict.fromkeys(sources) if source not in pending]

    def _unread_views(self, op: ir.Operation) -> list[ir.Operation] | None:
        """The free ops that are made of an op, readers before what they read; None where another op reads one."""
        found: dict[ir.Operation, None] = {}
        for user in (use.owner.operation for result in op.results for use in result.uses):
            above = None if user in self.of_op or not self.is_free(user) else self._unread_views(user)
            if above is None:
                return None
            found.update(dict.fromkeys([*above, user]))
        return list(found)

    def _erase(self, op: ir.Operation) -> None:
        cluster = self.of_op.pop(op, None)
        if cluster is not None:
            cluster.members.remove(op)
            cluster.axes.pop(op, None)
            cluster.reductions.pop(op, None)
            cluster.code_size -= code_size(op, outlined=True)
            if not cluster.members:
                del self.clusters[cluster.number]
                self._forget(1 << cluster.number)
        self._free.pop(op, None)
        self._reads.pop(op, None)
        self._in_order.pop(op, None)
        op.erase()

    def cluster_of(self, value: ir.Value) -> Cluster | None:
        """The cluster that a value comes from, through free ops."""
        op = defining_op(value)
        while op is not None and op not in self.of_op and self.is_free(op) and op.operands:
            op = defining_op(op.operands[0])
        return None if op is None else self.of_op.get(op)

    def readers_of_sizes(self, op: ir.Operation) -> list[Cluster]:
        """The clusters that read the sizes of `op` from data."""
        return [self.binds[name] for name in sorted(self._sizes_used(op) & self.binds.keys())] if self.binds else []

    def _sizes_used(self, op: ir.Operation) -> set[str]:
        """The symbols in the types and attributes of `op`, and in the shapes that it reads through free ops."""
        pending = [op, *(i.operation for nested in nested_blocks(op) for b in all_blocks(nested) for i in b.operations)]
        values = [v for part in pending for v in (*part.operands, *part.results)]
        sizes = [*(d for v in values for d in dims_of(v)), *(d for part in pending for d in window_sizes(part))]
        found = {name for d in sizes for name in d.symbols()}
        while pending:
            for value in pending.pop().operands:
                producer = defining_op(value)
                if producer is not None and self.is_free(producer):
                    pending.append(producer)
                    is_shape = producer.name == "disc.shape"
                    shape = dims_of_attr(producer.attributes["dims"]) if is_shape else dims_of(value)
                    found |= {name for d in shape for name in d.symbols()}
        return found

    def create(self, kind: str, domain: Dims, columns: int = 0) -> Cluster:
        """A new, empty cluster."""
        cluster = Cluster(len(self._needs), kind, domain, columns)
        self.clusters[cluster.number] = cluster
        self._needs[cluster.number] = 0
        return cluster

    def bind(self, op: ir.Operation, symbols: Iterable[str], producers: Iterable[Cluster]) -> None:
        """A cluster of its own for an op that reads the values of `symbols`."""
        cluster = self.create("bind", ())
        self.add(cluster, op, None, producers)
        self.binds.update(dict.fromkeys(symbols, cluster))

    def depends(self, cluster: Cluster, on: Cluster) -> bool:
        """True when `cluster` needs a result of `on`, directly or not."""
        return bool(self._needs[cluster.number] >> on.number & 1)

    def can_add(self, cluster: Cluster, producers: Iterable[Cluster]) -> bool:
        """Tells whether an op that reads `producers` may join `cluster` without a cycle."""
        return not any(p is not cluster and self.depends(p, cluster) for p in producers)

    def reductions_of(self, cluster: Cluster, op: ir.Operation) -> int:
        """The number of reductions above the result of `op`, one after the other, if it were a member of `cluster`."""
        above = 0
        if cluster.walks > 1:  # else none of its members has a reduction above it
            above = max((cluster.reductions.get(source, 0) for source in self._sources(op)), default=0)
        return above + (op.name == "stablehlo.reduce")

    def _sources(self, op: ir.Operation) -> list[ir.Operation]:
        """The ops that are no free ones whose results `op` reads."""
        found: list[ir.Operation] = []
        pending = [op]
        while pending:
            for value in pending.pop().operands:
                producer = defining_op(value)
                if producer is not None:
                    (pending if self.is_free(producer) else found).append(producer)
        return found

    def walks_of(self, a: Cluster, b: Cluster) -> int:
        """The most walks over a row that the two clusters take as one."""
        one_reads_other = self.depends(a, b) or self.depends(b, a)
        return a.walks + b.walks - 1 if one_reads_other else max(a.walks, b.walks)

    def add(
        self,
        cluster: Cluster,
        op: ir.Operation,
        axes: tuple[int | None, ...] | None,
        producers: Iterable[Cluster],
    ) -> None:
        """Make `op` a member of `cluster`."""
        cluster.members.append(op)
        cluster.code_size += code_size(op, outlined=True)
        cluster.reductions[op] = self.reductions_of(cluster, op)
        cluster.walks = max(cluster.walks, cluster.reductions[op] + 1)
        if axes is not None:
            cluster.axes[op] = axes
        self.of_op[op] = cluster
        needs = 0
        for producer in producers:
            if producer is not cluster:
                needs |= self._needs[producer.number] | 1 << producer.number
        self._extend(cluster, needs)

    def _extend(self, cluster: Cluster, needs: int) -> None:
        known = self._needs[cluster.number]
        if needs | known == known:
            return
        needs |= known
        self._needs[cluster.number] = needs
        self._needed |= needs
        self._spread(1 << cluster.number, needs)

    def _spread(self, of: int, needs: int) -> None:
        """Have all clusters that need one of `of` need `needs` as well."""
        if not self._needed & of:
            return
        self._needed |= needs
        for number in self.clusters:
            if self._needs[number] & of:
                self._needs[number] |= needs

    def can_merge(self, a: Cluster, b: Cluster) -> bool:
        """Tells whether two clusters may become one: no third cluster lies between them."""
        return not self._path_through_third(a, b) and not self._path_through_third(b, a)

    def _path_through_third(self, first: Cluster, last: Cluster) -> bool:
        if not self.depends(last, first):
            return False
        between = self._needs[last.number] & ~(1 << first.number)
        return any(between >> n & 1 and self._needs[n] >> first.number & 1 for n in self.clusters)

    def merge(
        self, into: Cluster, other: Cluster, axes: dict[ir.Operation, tuple[int | None, ...]], times: int = 1
    ) -> None:
        """Move the members of `other` into `into`; `axes` are their maps to `into`'s domain.

        They are computed `times` over, at as many indices.
        """
        walks = self.walks_of(into, other)
        if walks > max(into.walks, other.walks):
            first, last = (into, other) if self.depends(other, into) else (other, into)
            last.reductions = {op: n + first.walks - 1 for op, n in last.reductions.items()}
        into.reductions.update(other.reductions)
        into.walks = walks
        into.code_size += times * other.code_size
        into.members.extend(other.members)
        into.axes.update(axes)
        for op in other.members:
            self.of_op[op] = into
        del self.clusters[other.number]
        gone, kept = 1 << other.number, 1 << into.number
        needs = (self._needs[into.number] | self._needs[other.number]) & ~kept & ~gone
        self._needs[other.number] = 0
        self._needs[into.number] = needs
        self._spread(gone | kept, kept | needs)
        self._forget(gone)

    def _forget(self, gone: int) -> None:
        """Have no cluster need one that has become a part of another."""
        if self._needed & gone:
            for number in self.clusters:
                self._needs[number] &= ~gone
            self._needed &= ~gone
