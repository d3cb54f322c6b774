# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Combining elements with the body of a `reduce`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from shlo_disc.lowering.element_types import Element, constant_like, element_of, number_attribute, round_to
from shlo_disc.lowering.elementwise import Elementwise, same_lanes
from shlo_disc.shape_dialect.mlir import arith, ir, vector
from shlo_disc.shape_dialect.ops.reducers import is_arg_reduction, monoid_of

Accumulators = list[ir.Value]

# Which zero is the larger one is the most expensive part of a maximum, and there is one on the path of every element.
_EXTREMES = {"stablehlo.maximum": arith.maximumf, "stablehlo.minimum": arith.minimumf}


class Combiner:
    """The body of a reduce op, or another `region` of an op, on register values, scalar or vector."""

    def __init__(self, op: ir.OpView, elementwise: Elementwise, region: int = 0):
        self.op = op
        self.elementwise = elementwise
        self.block = op.regions[region].blocks[0]
        self.elements = [element_of(v.type) for v in op.results]

    @cached_property
    def monoid(self) -> str | None:
        """ "add", "maximum", ... when the body is that one op on one value; None for any other body."""
        return monoid_of(self.block)

    @cached_property
    def is_arg_reduction(self) -> bool:
        """Tells whether the op finds an element and its place, whatever the order it goes in."""
        return self.monoid is None and is_arg_reduction(self.op)

    @property
    def is_reorderable(self) -> bool:
        """Tells whether lanes may combine every so many elements each."""
        return self.monoid is not None or self.is_arg_reduction

    def identity(self, monoid: str) -> float | int:
        """The neutral element of a monoid on this reduce's element type."""
        element = self.elements[0]
        if monoid == "add" or monoid in ("or", "xor"):
            return 0
        if monoid == "multiply":
            return 1
        if monoid == "and":
            return -1
        largest, smallest = _extremes(element)
        return smallest if monoid == "maximum" else largest

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value], exact: bool = False) -> Accumulators:
        """body(left, right). Sums and products of half floats stay in f32 unless `exact`.

        The sign of a zero that is a maximum or minimum is that of any zero among the elements.
        """
        values = dict(zip(self.block.arguments, [*left, *right], strict=True))
        *ops, terminator = self.block.operations
        for op in ops:
            values[op.results[0]] = self._emit(op, [values[v] for v in op.operands], exact)
        results = [values[v] for v in terminator.operands]
        return same_lanes([*results, *left, *right])[: len(results)]

    def _emit(self, op: ir.OpView, operands: list[ir.Value], exact: bool) -> ir.Value:
        name = op.operation.name
        if name == "stablehlo.constant":
            attribute = ir.DenseElementsAttr(op.attributes["value"])
            return scalar_of(attribute, element_of(op.results[0].type))
        operands = same_lanes(operands)
        if name == "stablehlo.add" and not exact and element_of(op.results[0].type).is_half:
            return arith.addf(*operands)
        extreme = _EXTREMES.get(name)
        if extreme is not None and element_of(op.results[0].type).is_float:
            return extreme(*operands, fastmath=arith.FastMathFlags.nsz)
        return self.elementwise.emit(op, operands)

    def across_lanes(self, accumulators: Accumulators, width: int) -> Accumulators:
        """Fold `width` lanes (a power of two) into one scalar each, halving the vectors."""
        while width > 1:
            width //= 2
            low = [_half(a, 0, width) for a in accumulators]
            high = [_half(a, width, width) for a in accumulators]
            accumulators = self.combine_partials(low, high)
        return [vector.extract(a, [], [0]) for a in accumulators]

    def combine_partials(self, left: Accumulators, right: Accumulators) -> Accumulators:
        """body(left, right), for what two lanes or threads have found."""
        return self.combine(*(self._by_index(left, right) if self.is_arg_reduction else (left, right)))

    @staticmethod
    def _by_index(one: Accumulators, other: Accumulators) -> tuple[Accumulators, Accumulators]:
        """Two pairs of values and places, the one with the smaller place first."""
        is_first = arith.cmpi(arith.CmpIPredicate.ule, one[1], other[1])  # no place is below 0
        first = [arith.select(is_first, a, b) for a, b in zip(one, other, strict=True)]
        return first, [arith.select(is_first, b, a) for a, b in zip(one, other, strict=True)]

    def rounded(self, accumulators: Accumulators) -> Accumulators:
        """The final values as the result's elements."""
        return [round_to(a, e) for a, e in zip(accumulators, self.elements, strict=True)]


def _half(value: ir.Value, start: int, width: int) -> ir.Value:
    type_ = ir.VectorType.get([width], ir.VectorType(value.type).element_type)
    return vector.extract_strided_slice(type_, value, [start], [width], [1])


def _extremes(element: Element) -> tuple[float | int, float | int]:
    if element.is_float:
        return math.inf, -math.inf
    if element.is_bool:
        return 1, 0
    if element.is_unsigned:
        return -1, 0
    return (1 << (element.width - 1)) - 1, -(1 << (element.width - 1))


def scalar_of(attribute: ir.DenseElementsAttr, element: Element) -> ir.Value:
    """The element of a splat constant as a register value."""
    type_ = element.register()
    return arith.constant(type_, number_attribute(type_, attribute.get_splat_value().value))


def start_values(combiner: Combiner, init: Sequence[ir.Value], lanes: int) -> tuple[Accumulators, bool]:
    """The start value of each lane, and whether the initial values still have to be combined at the end.

    With a monoid lanes start from its neutral element, and otherwise from the initial values: on one lane, or on
    several where it makes no difference how often these are combined with the elements.
    """
    monoid = combiner.monoid
    if monoid is None:
        many = [v if lanes == 1 else vector.broadcast(ir.VectorType.get([lanes], v.type), v) for v in init]
        return many, False
    scalar = constant_like(init[0], combiner.identity(monoid))
    if lanes == 1:
        return [scalar], True
    return [vector.broadcast(ir.VectorType.get([lanes], scalar.type), scalar)], True
