# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that fold many elements into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.element_types import Element, constant_like, convert, element_of, round_to
from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.index_rules.rule import Rule
from shlo_disc.lowering.long_sums import SHORT, LongSums, in_blocks
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering.reduction import Combiner
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import arith, ir, math, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers


def nest(
    e: Elements,
    sizes: Sequence[ir.Value],
    start: list[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]],
    fold: Callable[[list[ir.Value]], list[ir.Value]] | None = None,
) -> list[ir.Value]:
    """A loop nest over `sizes` carrying `start`; `body(indices, carried)` gives the next carried values.

    `fold(carried)` does between the blocks of long loops (`long_sums`), and where an inner loop ends.
    """

    def level(depth: int, indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        if depth == len(sizes):
            return body(indices, carried)
        is_last = depth == len(sizes) - 1

        def iteration(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            with e.scope():
                inside = level(depth + 1, [*indices, index], values)
                return inside if fold is None or is_last else fold(inside)

        return in_blocks(index_constant(0), sizes[depth], 1, carried, iteration, fold if is_last else None)

    return level(0, [], start)


def _reduce(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    count = len(op.operands) // 2
    inputs, inits = list(op.operands)[:count], list(op.operands)[count:]
    reduced = sorted(integers(op.attributes["dimensions"]))
    dims = dims_of(inputs[0])
    combiner = Combiner(op, e.elementwise)
    sums = LongSums([combiner], may_be_long=not _is_short([dims[a] for a in reduced]))
    first = [e.at(v, ()) for v in inits]
    if any(not p.is_uniform for p in positions):
        first = [e.splat(v) for v in first]
    start = [constant_like(first[0], 0.0)] if sums.any else first

    def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        kept, inner = iter(positions), iter(indices)
        where = tuple(Position(next(inner)) if a in reduced else next(kept) for a in range(len(dims)))
        elements = [e.at(v, where) for v in inputs]
        if any(isinstance(c.type, ir.VectorType) for c in carried):
            elements = [e.splat(v) for v in elements]
        ((own, long),) = sums.split(carried)
        return [*combiner.combine(own, elements), *long]

    sizes = [e.size_of(dims[a]) for a in reduced]
    (total,) = sums.finish(nest(e, sizes, sums.start([start]), body, sums.fold if sums.any else None))
    results = combiner.rounded(combiner.combine(first, total) if sums.any else total)
    return results[list(op.results).index(value)]


def _dot_general(e: Elements, op: ir.OpView, value: ir.Value, positions: Positions) -> ir.Value:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = op.operands[0], op.operands[1]
    element, result = element_of(lhs.type), element_of(value.type)
    lhs_batch, rhs_batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    lhs_inner, rhs_inner = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    lhs_free = [a for a in range(len(dims_of(lhs))) if a not in {*lhs_batch, *lhs_inner}]
    rhs_free = [a for a in range(len(dims_of(rhs))) if a not in {*rhs_batch, *rhs_inner}]
    batch, rest = positions[: len(lhs_batch)], positions[len(lhs_batch) :]
    rows, columns = rest[: len(lhs_free)], rest[len(lhs_free) :]
    accumulator = accumulator_of(element, result)

    def place(
        batch_axes: list[int], free_axes: list[int], free: Positions, inner_axes: list[int], indices: list[ir.Value]
    ) -> Positions:
        where = dict(zip(batch_axes, batch, strict=True)) | dict(zip(free_axes, free, strict=True))
        where |= {a: Position(i) for a, i in zip(inner_axes, indices, strict=True)}
        return tuple(where[a] for a in range(len(where)))

    def body(indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
        a = e.at(lhs, place(lhs_batch, lhs_free, rows, lhs_inner, indices))
        b = e.at(rhs, place(rhs_batch, rhs_free, columns, rhs_inner, indices))
        a, b = (widen(e, v, element, accumulator, carried[0]) for v in (a, b))
        return [multiply_add(a, b, carried[0], accumulator)]

    start = zero_of(accumulator)
    if any(not p.is_uniform for p in positions):
        start = e.splat(start)
    sizes = [e.size_of(dims_of(lhs)[a]) for a in lhs_inner]
    (total,) = nest(e, sizes, [start], body)
    return round_to(convert(total, accumulator, result), result)


def _is_short(sizes: Sequence[Expr]) -> bool:
    """Tells whether so few elements are known to be added that they are one block."""
    count = product(tuple(sizes)).constant
    return count is not None and count <= SHORT


def accumulator_of(element: Element, result: Element) -> Element:
    """The element type that holds the sum of products of `element`."""
    if element.is_half:
        return Element("f32") if result.name != "f64" else result
    return result if result.width > element.width else element


def widen(e: Elements, value: ir.Value, element: Element, accumulator: Element, carried: ir.Value) -> ir.Value:
    """A factor as `accumulator`, in as many lanes as `carried` has."""
    held = Element("f32") if element.is_half else element
    wide = convert(value, held, accumulator) if held.name != accumulator.name else value
    return e.splat(wide) if isinstance(carried.type, ir.VectorType) else wide


def zero_of(element: Element) -> ir.Value:
    """0 in a register."""
    type_ = element.register()
    if isinstance(type_, ir.IntegerType):
        return arith.constant(type_, 0)
    return arith.constant(type_, 0.0)


def multiply_add(a: ir.Value, b: ir.Value, total: ir.Value, element: Element) -> ir.Value:
    """`total + a * b`; booleans are combined by or and and."""
    if element.is_float:
        return math.fma(a, b, total)
    if element.is_bool:
        return arith.ori(total, arith.andi(a, b))
    return arith.addi(total, arith.muli(a, b))


RULES: dict[str, Rule] = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.reduce": _reduce,
}

__all__ = ["RULES", "nest"]
