# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The conditions under which ops become one kernel.

A cluster iterates over a domain, and each of its members stands at some axes of it. An op may join the cluster of what
it reads where it can stand in the same domain; two clusters that meet in an op may become one where their domains are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE
from shlo_disc.shape_dialect.ops.access import Access, defining_op, is_free, resolve
from shlo_disc.shape_dialect.ops.code_size import code_size
from shlo_disc.shape_dialect.symbolic.facts import Relation
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.body import reading_axes
from shlo_disc.transforms.fusion.cluster import Cluster, Graph

DomainMap = dict[int, int]
"""Axis of an op -> axis of a cluster's domain."""

_Places = dict[int, int | None]
"""Axis of a cluster's domain -> axis of the domain that two clusters have as one; None for a size of 1."""

OWN_KINDS = frozenset(
    ("barrier", "bind", "concatenate", "control", "convolution", "dot", "library", "nonzero", "recurrence", "scan",
     "scatter", "select_and_scatter", "sort", "top_k", "update")
)  # fmt: skip
"""Kinds of cluster that no op joins."""


def wide_axes(dims: Dims) -> list[int]:
    """The axes whose size is not known to be 1."""
    return [axis for axis, size in enumerate(dims) if size.constant != 1]


# ---- an elementwise op joins the cluster of what it reads -----------------------------------------------------------

JOIN = Pattern["Join"]("elementwise-fusion", "an elementwise op is computed where a value that it reads is")


@dataclass
class Join:
    """An elementwise op, a cluster it reads, and which axis of the domain each of its own is read along.

    dims: the sizes of the op's result. opened: further axes of the op, along which it reads nothing of the cluster, as
    columns of the cluster; None where there are not as many of the one as of the other. mapping: which axis of the
    domain each axis of the op stands at.
    """

    op: ir.Operation
    dims: Dims
    cluster: Cluster
    read: DomainMap
    producers: Sequence[Cluster]
    graph: Graph
    opened: DomainMap | None = field(init=False)
    mapping: DomainMap = field(init=False)

    def __post_init__(self) -> None:
        self.opened = self._open()
        self.mapping = {**self.read, **(self.opened or {})}

    def _open(self) -> DomainMap | None:
        uncovered = [axis for axis in wide_axes(self.dims) if axis not in self.read]
        if not uncovered:
            return {}
        columns = [a for a in wide_axes(self.cluster.domain) if a >= self.cluster.rows]
        free = [a for a in columns if a not in self.read.values()]
        return dict(zip(uncovered, free, strict=True)) if len(free) == len(uncovered) else None


@JOIN.requires("the cluster is of a kind that takes further ops")
def _takes_ops(found: Join) -> bool:
    return found.cluster.kind not in OWN_KINDS


@JOIN.requires("the op reads it along an axis, or all there is are single elements")
def _reads_an_axis(found: Join) -> bool:
    return bool(found.read) or not found.cluster.domain


@JOIN.requires("axes of the op along which it does not read the cluster are all of the cluster's other columns")
def _every_axis_has_a_place(found: Join) -> bool:
    return found.opened is not None


@JOIN.requires("the op's axes stand in the order of the domain, each at another one")
def _in_order(found: Join) -> bool:
    order = [found.mapping[i] for i in sorted(found.mapping)]
    return order == sorted(set(order))


def _unequal(found: Join) -> list[Relation]:
    pairs = ((found.dims[i], found.cluster.domain[a]) for i, a in found.mapping.items())
    return [Relation.eq(size, there) for size, there in pairs if size != there]


@JOIN.requires("each axis is as long as that of the domain", missing=_unequal)
def _equal_sizes(found: Join) -> bool:
    return all(found.dims[i] == found.cluster.domain[a] for i, a in found.mapping.items())


@JOIN.requires("the kernel does not become too long")
def _joined_is_short(found: Join) -> bool:
    size = found.cluster.code_size + code_size(found.op, outlined=True)
    return size * found.cluster.walks <= policy().kernel_instructions


JOIN_FIRST = Pattern["Join"]("join-before-others", "an op joins one cluster while the others that it reads stand apart")


@JOIN_FIRST.requires("nothing else that the op reads depends on the cluster")
def _no_cycle(found: Join) -> bool:
    return found.graph.can_add(found.cluster, found.producers)


# ---- two clusters become one ----------------------------------------------------------------------------------------

MERGE = Pattern["Merge"]("merge-fusions", "two kernels that one op reads become one")


@dataclass
class Merge:
    """Two clusters that an op reads, and which axis of each domain each axis of the op is read along.

    translation: for each axis of the other's domain that of the cluster's, None for a size of 1; None where an axis of
    the other's domain is none of the op's.
    """

    cluster: Cluster
    mapping: DomainMap
    other: Cluster
    other_mapping: DomainMap
    graph: Graph
    translation: dict[int, int | None] | None = field(init=False)

    def __post_init__(self) -> None:
        needed = wide_axes(self.other.domain)
        known = {self.other_mapping[i]: a for i, a in self.mapping.items() if self.other_mapping.get(i) in needed}
        ones = dict.fromkeys(a for a, d in enumerate(self.other.domain) if d.constant == 1)
        self.translation = {**known, **ones} if set(known) == set(needed) else None

    @property
    def op(self) -> ir.Operation:
        """The last op of the other one."""
        return self.other.members[-1]

    @property
    def axes(self) -> dict[ir.Operation, tuple[int | None, ...]]:
        """For each member of the other one, the axes of the cluster's domain that it then stands at."""
        places = self.translation or {}
        return {m: tuple(None if a is None else places[a] for a in axes) for m, axes in self.other.axes.items()}

    @property
    def other_columns(self) -> set[int]:
        """The cluster's axes that the other reduces along."""
        translation = self.translation or {}
        places = (translation[a] for a in wide_axes(self.other.domain) if a >= self.other.rows)
        return {t for t in places if t is not None}


@MERGE.requires("both are loops or row reductions")
def _walk_alike(found: Merge) -> bool:
    return {found.other.kind, found.cluster.kind} <= {"loop", "row_reduce"}


@MERGE.requires("every member of the other one stands at the index of its domain")
def _is_aligned(found: Merge) -> bool:
    return found.other.is_aligned


@MERGE.requires("the op reads the other one along all axes of its domain")
def _is_translated(found: Merge) -> bool:
    return found.translation is not None


@MERGE.requires("both reduce along the same columns, if both do")
def _same_columns(found: Merge) -> bool:
    if not found.other.columns or not found.cluster.columns:
        return True
    return found.other_columns == {a for a in wide_axes(found.cluster.domain) if a >= found.cluster.rows}


@MERGE.requires("what reads at other indices than its own does not depend on a reduction")
def _moves_nothing_reduced(found: Merge) -> bool:
    """A row kernel holds the reductions of one row at a time, so such a reader has to wait for all rows."""
    if not found.cluster.columns and not found.other.columns:
        return True
    axes = found.cluster.axes | found.other.axes
    members = {*found.cluster.members, *found.other.members}
    movers = [m for m in members if m not in axes or (m.name not in ELEMENTWISE and m.name != "stablehlo.reduce")]
    return not any(depends_on_reduction(m, members) for m in movers)


@MERGE.requires("no reduction that goes in order would keep another one from being done by lanes")
def _reduce_in_one_way(found: Merge) -> bool:
    return len(found.graph.orders_of((*found.cluster.members, *found.other.members))) < 2


@MERGE.requires("where one reads the other, it does so at the index where both then stand")
def _reads_in_place(found: Merge) -> bool:
    places: dict[int, _Places] = {
        found.cluster.number: {a: a for a in range(len(found.cluster.domain))},
        found.other.number: found.translation or {},
    }
    pairs = ((found.cluster, found.other), (found.other, found.cluster))
    return all(_reads_at_its_index(found, reader, source, places) for reader, source in pairs)


@MERGE.requires("the kernel does not become too long")
def _merged_is_short(found: Merge) -> bool:
    size = found.cluster.code_size + found.other.code_size
    return size * found.graph.walks_of(found.cluster, found.other) <= policy().kernel_instructions


@MERGE.requires("no third cluster needs the one and is needed by the other")
def _no_third_between(found: Merge) -> bool:
    return found.graph.can_merge(found.cluster, found.other)


def _reads_at_its_index(found: Merge, reader: Cluster, source: Cluster, places: dict[int, _Places]) -> bool:
    """Ops that move data compute what they read at the index where they read it; the others have it there already."""
    if not found.graph.depends(reader, source):
        return True
    for op, axes in reader.axes.items():
        name = op.name
        if name in ELEMENTWISE or name == "stablehlo.reduce":
            reads = [read for read in found.graph.reads_of(op) if found.graph.cluster_of(read.value) is source]
            own = reading_axes(op, axes, reader) if reads else ()
            if not all(
                _stands_there(read, own, source, places[reader.number], places[source.number]) for read in reads
            ):
                return False
    return True


def _stands_there(
    read: Access, own: Sequence[int | None], source: Cluster, of_reader: _Places, of_source: _Places
) -> bool:
    """Tells whether a read of a result of `source` is at the index where both stand; `own`: the reader's axes."""
    if read.made_by is None or read.axes is None or read.made_by not in source.axes:
        return read.made_by is None
    for axis, there in zip(read.axes, source.axes[read.made_by], strict=True):
        here = None if axis is None else own[axis]
        if here is None or there is None or source.domain[there].constant == 1:
            continue
        if of_reader.get(here) != of_source.get(there):
            return False
    return True


def depends_on_reduction(op: ir.Operation, members: set[ir.Operation]) -> bool:
    """Tells whether a reduction among `members` is above `op`, through members and free ops."""
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


# ---- a reduction joins the cluster that computes what it reduces ----------------------------------------------------

REDUCE = Pattern["RowReduce"]("row-reduce-fusion", "a reduction along the last axes is computed with what it reduces")


@dataclass
class RowReduce:
    """A reduction of `reduced` trailing axes of sizes `dims`, and a cluster that computes one of its inputs.

    target: which axis of the domain each axis of the input stands at (None: a size of 1).
    """

    op: ir.Operation
    dims: Dims
    reduced: int
    cluster: Cluster
    target: dict[int, int | None]
    producers: Sequence[Cluster]
    graph: Graph

    @staticmethod
    def of(
        op: ir.Operation, value: ir.Value, reduced: int, producers: Sequence[Cluster], graph: Graph
    ) -> RowReduce | None:
        """The reduction with the cluster that computes `value`; None where no cluster does, index by index."""
        dims = dims_of(value)
        access = resolve(value, tuple(range(len(dims))))
        producer = defining_op(access.value)
        cluster = None if producer is None else graph.of_op.get(producer)
        if cluster is None or producer is None or producer not in cluster.axes or access.axes is None:
            return None
        pairs = zip(access.axes, cluster.axes[producer], strict=True)
        target = {axis: place for axis, place in pairs if axis is not None}
        return RowReduce(op, dims, reduced, cluster, target, producers, graph)

    @property
    def column_axes(self) -> list[int | None]:
        """The axes of the domain that are reduced along."""
        axes = range(len(self.dims) - self.reduced, len(self.dims))
        return [self.target.get(i) for i in axes if self.dims[i].constant != 1]

    @property
    def columns(self) -> int:
        """The number of the domain's last axes that are columns from now on."""
        return self.cluster.columns or len(self.cluster.domain) - min(a for a in self.column_axes if a is not None)

    @property
    def axes(self) -> tuple[int | None, ...]:
        """The positions of the result's axes in the domain."""
        return tuple(self.target.get(i) for i in range(len(self.dims) - self.reduced))


@REDUCE.requires("the cluster is a loop or reduces rows already")
def _walks(found: RowReduce) -> bool:
    return found.cluster.kind in ("loop", "row_reduce")


@REDUCE.requires("what is reduced runs along the whole domain, in its order")
def _whole_domain(found: RowReduce) -> bool:
    return [found.target.get(i) for i in wide_axes(found.dims)] == wide_axes(found.cluster.domain)


@REDUCE.requires("the columns are those that the cluster has, if it has some")
def _its_columns(found: RowReduce) -> bool:
    if not found.cluster.columns:
        return True
    return {a for a in wide_axes(found.cluster.domain) if a >= found.cluster.rows} == set(found.column_axes)


@REDUCE.requires("it does not keep other reductions from being done by lanes, nor they it")
def _reduces_like_the_others(found: RowReduce) -> bool:
    return len(found.graph.orders_of((*found.cluster.members, found.op))) < 2


@REDUCE.requires("the kernel does not become too long, walk by walk over a row")
def _reduced_is_short(found: RowReduce) -> bool:
    size = found.cluster.code_size + code_size(found.op, outlined=True)
    walks = max(found.cluster.walks, found.graph.reductions_of(found.cluster, found.op) + 1)
    return size * walks <= policy().kernel_instructions


@REDUCE.requires("nothing that the reduction reads depends on the cluster by way of another one")
def _reduce_has_no_cycle(found: RowReduce) -> bool:
    return found.graph.can_add(found.cluster, found.producers)


# ---- data movement computes what it reads ---------------------------------------------------------------------------

ABSORB = Pattern["Absorb"](
    "absorb-producer", "an op that moves data computes what it moves, at the index where it reads it"
)


@dataclass
class Absorb:
    """The cluster of an op that moves data, and that of one of its operands, of which it reads `times` operands."""

    op: ir.Operation
    cluster: Cluster
    producer: Cluster
    times: int


@ABSORB.requires("the operand is computed by a loop, element by element")
def _is_loop(found: Absorb) -> bool:
    return found.producer.kind == "loop"


@ABSORB.requires("nothing else reads it")
def _only_feeds(found: Absorb) -> bool:
    readers = {*found.producer.members, found.op}
    return all(_users_are_within(m, readers) for m in found.producer.members)


@ABSORB.requires("the kernel does not become too long, with all that is computed at several indices")
def _absorbed_is_short(found: Absorb) -> bool:
    return found.cluster.code_size + found.times * found.producer.code_size <= policy().kernel_instructions


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
