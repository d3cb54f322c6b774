# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The participants of a collective: their groups, as StableHLO's specification derives them.

A program runs on replicas times partitions participants, numbered partition by partition within each replica.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from shlo_disc.shape_dialect.dialect.names import PARTICIPANTS
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import terminator_of

REDUCTIONS = {
    f"stablehlo.{name}": code for code, name in enumerate(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))
}
"""The ops that combine elements, by their numbers in the runtime."""


class Counts(NamedTuple):
    """The number of participants, as replicas and partitions."""

    replicas: int
    partitions: int

    @property
    def total(self) -> int:
        """All participants."""
        return self.replicas * self.partitions

    def number(self, replica: int, partition: int) -> int:
        """The number of a participant."""
        return replica * self.partitions + partition


def module_of(op: ir.OpView) -> ir.Operation:
    """The module around an op."""
    module = op.operation
    while module.parent is not None:
        module = module.parent.operation
    return module


def counts_of(module: ir.Operation) -> Counts:
    """The number of participants that a module states."""

    def count(name: str) -> int:
        return ir.IntegerAttr(module.attributes[name]).value if name in module.attributes else 1

    return Counts(count("mhlo.num_replicas"), count("mhlo.num_partitions"))


def runs_on_all(op: ir.OpView) -> bool:
    """Tells whether the module around an op is compiled to run on all of its participants."""
    return PARTICIPANTS in module_of(op).attributes


def participants(op: ir.OpView) -> int:
    """The number of participants of an op: the module's count, or the members of a collective's largest group."""
    groups = [len(set(group)) for group in stated_groups(op)]
    return max([*counts_of(module_of(op)), *groups])


def stated_groups(op: ir.OpView) -> list[list[int]]:
    """The groups of a collective as the op has them, or for a permutation its pairs."""
    attribute = "source_target_pairs" if "source_target_pairs" in op.attributes else "replica_groups"
    if attribute not in op.attributes:
        return []
    groups = np.array(ir.DenseIntElementsAttr(op.attributes[attribute])).tolist()
    return [[member for member in group if member >= 0] for group in groups]


def groups_of(op: ir.OpView) -> list[list[int]]:
    """The groups of a collective by the numbers of their participants. Raises ValueError when there are no such."""
    counts = counts_of(module_of(op))
    by_partition, joined = _strategy(op)
    limits = counts.partitions if by_partition else counts.replicas
    if "use_global_device_ids" in op.attributes:
        by_partition, joined, limits = False, False, counts.total
        copies: Sequence[Callable[[int], list[int]]] = [lambda member: [member]]
    elif by_partition:
        copies = [lambda m, r=r: [counts.number(r, m)] for r in range(counts.replicas)]  # type: ignore[misc]
    elif joined:
        copies = [lambda m: [counts.number(m, p) for p in range(counts.partitions)]]
    else:
        copies = [lambda m, p=p: [counts.number(m, p)] for p in range(counts.partitions)]  # type: ignore[misc]
    stated = stated_groups(op)
    if not stated and "source_target_pairs" not in op.attributes:
        stated = [list(range(limits))]
    if any(member >= limits for group in stated for member in group):
        raise ValueError(f"its groups {stated} name more than the {limits} participants that there are")
    return [_expanded(group, copy, joined) for copy, group in product(copies, stated)]


def reduction_of(op: ir.OpView) -> str | None:
    """The op that the body of a collective applies to its two arguments; None when it is another."""
    block = op.regions[0].blocks[0]
    if len(block.operations) != 2:
        return None
    inner = block.operations[0].operation
    applies = inner.name in REDUCTIONS and set(inner.operands) == set(block.arguments)
    return inner.name if applies and list(terminator_of(block).operands) == list(inner.results) else None


def combined_type(element: ir.Type) -> ir.Type:
    """The type in which elements are combined."""
    if isinstance(element, ir.FloatType):
        return element if element.width >= 32 else ir.F32Type.get()
    if isinstance(element, ir.IntegerType) and element.width < 32:
        narrow = ir.IntegerType.get_unsigned if element.is_unsigned else ir.IntegerType.get_signless
        return narrow(32)
    return element


def _expanded(group: list[int], copy: Callable[[int], list[int]], joined: bool) -> list[int]:
    """The participants of a group; those of one partition stand together where partitions are joined."""
    columns = [copy(member) for member in group]
    rows = zip(*columns, strict=True) if joined else columns
    return [number for row in rows for number in row]


def _strategy(op: ir.OpView) -> tuple[bool, bool]:
    """Tells whether groups are of partitions, and whether groups of replicas join all partitions."""
    handle = op.attributes.get("channel_handle", None)
    has_channel = handle is not None and "handle = 0" not in str(handle)
    moves = op.operation.name in (
        "stablehlo.all_to_all",
        "stablehlo.collective_broadcast",
        "stablehlo.collective_permute",
    )
    return has_channel and moves, has_channel and not moves


__all__ = [
    "REDUCTIONS",
    "Counts",
    "combined_type",
    "counts_of",
    "groups_of",
    "module_of",
    "participants",
    "reduction_of",
    "runs_on_all",
    "stated_groups",
]
