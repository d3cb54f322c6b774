# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of kernels, by which `fuse` chooses among ways to group ops.

Each symbol has a likely size in it, so that the cheaper of two ways is known before any size is.
`python -m benchmarks.estimates` compares the order of such estimates with that of measured times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import Dims, bytes_of, dims_of, element_type_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import ELEMENTWISE, RESHAPES
from shlo_disc.shape_dialect.ops.access import Access, defining_op, is_free
from shlo_disc.shape_dialect.ops.code_size import code_size
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.transforms.cost import Choice, Cost
from shlo_disc.transforms.fusion.cluster import Cluster, Graph

LIKELY_SIZE = 64
"""The value of each symbol where sizes of values are compared."""

_INSTRUCTIONS = {"stablehlo.divide": 12, "stablehlo.sqrt": 12}
"""Ops whose one instruction takes as long as several."""

_VECTOR = 64
"""Bytes."""


def likely(size: Expr) -> int:
    """The value of a size where each symbol has its likely one."""
    return size.evaluate(dict.fromkeys(size.symbols(), LIKELY_SIZE))


def likely_bytes(value: ir.Value) -> int:
    """The bytes of a value at likely sizes."""
    return likely(product(dims_of(value)) * bytes_of(element_type_of(value)))


def instructions_of(op: ir.Operation, element: ir.Type, domain: Dims) -> int:
    """The instructions for vectors of an op on each element of a domain."""
    vectors = likely(product(domain)) * bytes_of(element) // _VECTOR
    return _INSTRUCTIONS.get(op.name, code_size(op)) * vectors


def is_made(read: Access) -> bool:
    """Tells whether what is read is a constant, made of positions, or made of sizes."""
    op = read.made_by
    return op is not None and is_free(op) and op.name not in RESHAPES


@dataclass(frozen=True)
class Group:
    """Ops that are, or might be, one kernel: `domain` is what it goes through, `walks` times."""

    members: Collection[ir.Operation]
    domain: Dims
    walks: int = 1

    @staticmethod
    def of(cluster: Cluster) -> Group:
        """The ops of a cluster."""
        return Group(cluster.members, walked(cluster), cluster.walks)


def walked(cluster: Cluster) -> Dims:
    """The sizes of what a kernel goes through: its domain, or what it reduces to that."""
    if cluster.kind != "reduce":
        return cluster.domain
    op = next(member for member in cluster.members if member.name == "stablehlo.reduce")
    return dims_of(op.operands[0])


def arrays_of(graph: Graph, members: Collection[ir.Operation]) -> list[ir.Value]:
    """The arrays that a kernel of these ops reads."""
    found: dict[ir.Value, None] = {}
    own = set(members)
    for read in (read for member in members for read in _reads(graph, member)):
        is_inside = read.made_by is not None and read.made_by in own
        if not is_inside and not is_made(read):
            found[root(read.value)] = None
    return list(found)


def _reads(graph: Graph, op: ir.Operation) -> list[Access]:
    if op.name in ELEMENTWISE or op.name == "stablehlo.reduce":
        return graph.reads_of(op)
    return [Access(value, None, defining_op(value)) for value in op.operands]


def results_of(graph: Graph, members: Collection[ir.Operation]) -> list[ir.Value]:
    """The values that a kernel of these ops writes: those that are read outside of it."""
    own = set(members)
    values = (value for member in members for value in member.results)
    return [value for value in values if any(user not in own for user in readers_of(graph, value))]


def readers_of(graph: Graph, value: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read a value through free ops, terminators and ops in regions among them."""
    for use in value.uses:
        user = use.owner.operation
        if user not in graph.of_op and graph.is_free(user):
            yield from readers_of(graph, user.results[0])
        else:
            yield user


def cost_of(graph: Graph, group: Group) -> Cost:
    """The cost of a kernel."""
    computed = sum(instructions_of(op, element_type_of(op.results[0]), group.domain) for op in group.members)
    read, written = (sum(map(likely_bytes, of(graph, group.members))) for of in (arrays_of, results_of))
    return Cost(1, read, written, computed * group.walks)


def joining(graph: Graph, one: Group, other: Group) -> Choice:
    """The choice between two kernels and one that does the work of both."""
    without = cost_of(graph, one).plus(cost_of(graph, other))
    together = cost_of(graph, Group({*one.members, *other.members}, one.domain))
    return Choice(without, together._replace(instructions=without.instructions))


def handing_over(values: Sequence[ir.Value]) -> Choice:
    """The choice between kernels, each of which hands on one of some values to the next, and one kernel for all."""
    size = sum(map(likely_bytes, values))
    return Choice(Cost(len(values) + 1, size, size), Cost(1))


def reading_once(value: ir.Value) -> Choice:
    """The choice between two kernels that read a value and one that reads it once."""
    return Choice(Cost(2, 2 * likely_bytes(value)), Cost(1, likely_bytes(value)))
