# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that read the same array, none of which needs the other, become one where that costs less.

The walk of `grouping` follows values from what makes them to what reads them, so the minimum, the maximum and the mean
of an array are three kernels, each of which reads the array. Here pairs of kernels over the same sizes are merged, the
pair that saves most first (multi-output fusion in XLA, horizontal stitching in FusionStitching, Zheng et al., 2022).
Memory is no matter of the cost: a pair is only merged if no kernel of another kind, such as a product, stands between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.cost import Choice
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.cluster import Cluster, Graph
from shlo_disc.transforms.fusion.costs import Group, arrays_of, joining, likely_bytes, results_of, walked
from shlo_disc.transforms.fusion.grouping_patterns import MERGE, OWN_KINDS, Merge

ARRAYS = 16
"""Arrays that a merged kernel reads and writes, at most: more than that are too many streams for the caches."""

NEIGHBOURS = 8
"""Readers of an array that each reader is compared with, at most."""


@dataclass(eq=False)
class Siblings:
    """Two kernels that read an array; `second` has the last op."""

    graph: Graph
    first: Cluster
    second: Cluster

    @property
    def op(self) -> ir.Operation:
        """The last op of both."""
        return self.second.members[-1]

    @cached_property
    def choice(self) -> Choice:
        """Both apart, or as one."""
        return joining(self.graph, Group.of(self.first), Group.of(self.second))

    def merge(self) -> Merge | None:
        """One of them as a part of the other, where that may be."""
        same = {axis: axis for axis in range(len(self.first.domain))}
        for into, other in ((self.first, self.second), (self.second, self.first)):
            found = MERGE.match(lambda pair: Merge(pair[0], same, pair[1], same, self.graph), (into, other))
            if found is not None:
                return found
        return None


# ---- loops and rows -------------------------------------------------------------------------------------------------

SIBLINGS: Pattern[Siblings] = Pattern("merge-siblings", "two kernels that read one array read it once")


@SIBLINGS.requires("both are loops, or both reduce rows")
def _are_of_one_kind(found: Siblings) -> bool:
    return found.first.kind == found.second.kind and found.first.kind in ("loop", "row_reduce")


@SIBLINGS.requires("both go through the same sizes, along the same columns")
def _same_domain(found: Siblings) -> bool:
    return found.first.domain == found.second.domain and found.first.columns == found.second.columns


# ---- columns --------------------------------------------------------------------------------------------------------

SIBLING_COLUMNS: Pattern[Siblings] = Pattern(
    "merge-sibling-columns", "two reductions down the columns of one array read it once"
)


@SIBLING_COLUMNS.requires("a kernel of columns takes several reductions")
def _takes_several(found: Siblings) -> bool:
    return not policy().has_column_tiles


@SIBLING_COLUMNS.requires("both reduce along all axes but the last")
def _are_columns(found: Siblings) -> bool:
    return all(map(_is_of_columns, (found.first, found.second)))


@SIBLING_COLUMNS.requires("both go through the same sizes")
def _same_rows(found: Siblings) -> bool:
    return walked(found.first) == walked(found.second) and found.first.domain == found.second.domain


@SIBLING_COLUMNS.requires("the kernel does not become too long")
def _is_short(found: Siblings) -> bool:
    return found.first.code_size + found.second.code_size <= policy().kernel_instructions


def _is_of_columns(cluster: Cluster) -> bool:
    reductions = [op for op in cluster.members if op.name == "stablehlo.reduce"]
    if cluster.kind != "reduce" or not reductions:
        return False
    rank = len(dims_of(reductions[0].operands[0]))
    return rank > 1 and all(sorted(integers(op.attributes["dimensions"])) == list(range(rank - 1)) for op in reductions)


# ---- both -----------------------------------------------------------------------------------------------------------


@SIBLINGS.requires("neither needs the other, and no third kernel stands between")
@SIBLING_COLUMNS.requires("neither needs the other, and no third kernel stands between")
def _are_apart(found: Siblings) -> bool:
    graph, first, second = found.graph, found.first, found.second
    is_needed = graph.depends(first, second) or graph.depends(second, first)
    return not is_needed and graph.can_merge(first, second)


@SIBLINGS.requires("they do not read and write too many arrays at once")
@SIBLING_COLUMNS.requires("they do not read and write too many arrays at once")
def _has_few_arrays(found: Siblings) -> bool:
    both = (found.first, found.second)
    arrays = {value for cluster in both for value in arrays_of(found.graph, cluster.members)}
    return len(arrays) + sum(len(results_of(found.graph, cluster.members)) for cluster in both) <= ARRAYS


@SIBLINGS.requires("it costs less")
@SIBLING_COLUMNS.requires("it costs less")
def _pays(found: Siblings) -> bool:
    return found.choice.gain > 0


def merge_siblings(block: ir.Block, graph: Graph, decisions: Decisions) -> None:
    """Merge the clusters of a block that read the same arrays, in place, while a pair is left that saves something."""
    position = {op.operation: number for number, op in enumerate(block.operations)}
    others = sorted(position[op] for op, cluster in graph.of_op.items() if cluster.kind in OWN_KINDS and op in position)
    refused: set[frozenset[int]] = set()
    while True:
        pairs = _pairs(graph, position, others, refused)
        merged = [pair for pair in pairs if _merged(pair, decisions)]
        if not merged:
            return
        refused |= {frozenset((pair.first.number, pair.second.number)) for pair in pairs}


def _pairs(
    graph: Graph, position: dict[ir.Operation, int], others: list[int], refused: set[frozenset[int]]
) -> list[Siblings]:
    """Kernels that share arrays of as many elements as they go through, those that share most bytes first.

    None of another kind stands between their last ops.
    """
    readers: dict[tuple[ir.Value, int], list[tuple[int, Cluster]]] = {}
    for cluster in graph.clusters.values():
        if cluster.kind in ("loop", "row_reduce", "reduce"):
            last, elements = max(position[member] for member in cluster.members), product(walked(cluster))
            for value in arrays_of(graph, cluster.members):
                if product(dims_of(value)) == elements:
                    readers.setdefault((value, bisect_left(others, last)), []).append((last, cluster))
    shared: Counter[frozenset[int]] = Counter()
    found: dict[frozenset[int], Siblings] = {}
    for (value, _), own in readers.items():
        ordered = [cluster for _, cluster in sorted(own, key=lambda pair: pair[0])]
        for begin, first in enumerate(ordered):
            for second in ordered[begin + 1 : begin + 1 + NEIGHBOURS]:
                numbers = frozenset((first.number, second.number))
                if numbers not in refused:
                    shared[numbers] += likely_bytes(value)
                    found.setdefault(numbers, Siblings(graph, first, second))
    return [found[numbers] for numbers, _ in shared.most_common()]


def _merged(pair: Siblings, decisions: Decisions) -> bool:
    """Merge a pair whose clusters are both still there, and may be one; tells whether that was done."""
    graph, first, second = pair.graph, pair.first, pair.second
    if not all(graph.clusters.get(cluster.number) is cluster for cluster in (first, second)):
        return False
    pair = Siblings(graph, first, second)  # as they are now: they may have been merged with others
    if first.kind == "reduce":
        found = SIBLING_COLUMNS.match(lambda pair: pair, pair)
        if found is None or not decisions.take(SIBLING_COLUMNS.name, pair.op, lambda: pair.choice):
            return False
        graph.merge(first, second, second.axes)
        return True
    found = SIBLINGS.match(lambda pair: pair, pair)
    merge = None if found is None else found.merge()
    if merge is None or not decisions.take(SIBLINGS.name, pair.op, lambda: pair.choice):
        return False
    graph.merge(merge.cluster, merge.other, merge.axes)
    return True
