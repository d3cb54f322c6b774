# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Relations of sizes: those that are the same, computed from others, or fixed by the attributes of an op.

An op without a rule fixes every size it touches. Sizes of 0 and 1 are never unknown: 1 may stand for a broadcast.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from shlo_disc.shape_dialect.dense import text_alone
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir


class Size(NamedTuple):
    """The size of a value along an axis."""

    value: ir.Value
    axis: int


class SizeRelations(ABC):
    """The relations of sizes that rules state."""

    @abstractmethod
    def same(self, a: Size, b: Size) -> None:
        """The two are equal in every instance."""

    def same_shape(self, values: Sequence[ir.Value]) -> None:
        """All values have one shape."""
        for other in values[1:]:
            self.same_axes(values[0], range(rank(values[0])), other, range(rank(other)))

    def same_axes(self, a: ir.Value, a_axes: Iterable[int], b: ir.Value, b_axes: Iterable[int]) -> None:
        """The sizes of `a` along `a_axes` are those of `b` along `b_axes`."""
        for i, j in zip(a_axes, b_axes, strict=True):
            self.same(Size(a, i), Size(b, j))

    @abstractmethod
    def computed(self, result: Size, sources: Iterable[Size]) -> None:
        """The result is a function of the sources, and of nothing else that could change."""

    @abstractmethod
    def fix(self, value: ir.Value, axes: Iterable[int] | None = None) -> None:
        """The sizes (all by default) stay the numbers they are."""


def rank(value: ir.Value) -> int:
    """The rank of a tensor; 0 of anything else."""
    return ir.RankedTensorType(value.type).rank if isinstance(value.type, ir.RankedTensorType) else 0


def extent(size: Size) -> int:
    """The number that the size is in the static program."""
    return int(ir.RankedTensorType(size.value.type).shape[size.axis])


RelationRule = Callable[[SizeRelations, ir.OpView], None]


def numbers_of(op: ir.OpView, name: str) -> list[int]:
    """The numbers of a list attribute; none where it is absent."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else []


def one_shape(r: SizeRelations, op: ir.OpView) -> None:
    """The rule of an op whose operands, scalars aside, and results have one shape."""
    r.same_shape([*op.results, *(v for v in op.operands if rank(v))])


def all_alike(r: SizeRelations, op: ir.OpView) -> None:
    """The rule of an op whose operands and results have one shape."""
    r.same_shape([*op.results, *op.operands])


def one_to_one(r: SizeRelations, op: ir.OpView) -> None:
    """The rule of an op whose results have the shapes of its operands."""
    for result, operand in zip(op.results, op.operands, strict=True):
        r.same_shape([result, operand])


def splat_text(constant: ir.OpView) -> str:
    """The literal of a constant whose elements are all alike; "" of another. Complex elements are had as text only."""
    if isinstance(element_type_of(constant.results[0]), ir.ComplexType):
        text = text_alone(constant)
    else:
        value = constant.attributes["value"]
        text = "" if isinstance(value, ir.DenseElementsAttr) and not value.is_splat else str(value)
    start = text.index("dense<") + len("dense<") if "dense<" in text else len(text)
    literal = text[start : text.find(">", start)]
    return "" if literal.startswith(("[", '"')) else literal


def reshape_groups(source: Sequence[int], result: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Least groups of axes with equal products, in order; axes of size 1 belong to none. Nothing when it is empty."""
    if 0 in source:
        return []
    groups = []
    left = [axis for axis, size in enumerate(source) if size > 1]
    right = [axis for axis, size in enumerate(result) if size > 1]
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (x := math.prod(source[i] for i in a)) != (y := math.prod(result[i] for i in b)):
            if x < y:
                a.append(left.pop(0))
            else:
                b.append(right.pop(0))
        groups.append((a, b))
    return groups


def related(r: SizeRelations, source: Size, result: Size, *, unchanged: bool) -> None:
    """The result's size is the source's, or is computed from it."""
    if unchanged:
        r.same(source, result)
    else:
        r.computed(result, [source])


__all__ = [
    "RelationRule", "Size", "SizeRelations", "all_alike", "extent", "numbers_of", "one_shape", "one_to_one", "rank",
    "related", "reshape_groups", "splat_text",
]  # fmt: skip
