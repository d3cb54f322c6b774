# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops of CPU kernels: counted ones, over vectors of elements, and choices between versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shlo_disc.lowering.elements import Elements, Positions
from shlo_disc.lowering.long_sums import in_blocks
from shlo_disc.lowering.positions import Position, index_constant
from shlo_disc.lowering_cpu.emitters.vector_elements import VectorElements
from shlo_disc.shape_dialect.mlir import arith, ir, scf, vector
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv


def either(condition: ir.Value | None, body: Callable[[bool], None]) -> None:
    """`body(True)` where the condition holds at run time, else `body(False)`."""
    if condition is None:
        body(False)
        return
    choice = scf.IfOp(condition, [], has_else=True)
    for block, outcome in ((choice.then_block, True), (choice.else_block, False)):
        with ir.InsertionPoint(block):
            body(outcome)
            scf.yield_([])


def for_range(begin: ir.Value, end: ir.Value, body: Callable[[ir.Value], None], step: ir.Value | None = None) -> None:
    """A plain counted loop."""
    loop = scf.ForOp(begin, end, step or index_constant(1), [])
    with ir.InsertionPoint(loop.body):
        body(loop.induction_variable)
        scf.yield_([])


def over_lanes(
    elements: VectorElements,
    begin: ir.Value,
    end: ir.Value,
    divisible: bool,
    carried: list[ir.Value],
    body: Callable[[Position, list[ir.Value], ir.Value | None], list[ir.Value]],
    fold: Callable[[list[ir.Value]], list[ir.Value]] | None = None,
) -> list[ir.Value]:
    """Vectors over [begin, end), then one masked vector for the rest unless the length is a multiple of the width.

    `body(position, carried, mask)` returns the next carried values; with a mask it must leave masked lanes alone.
    Where it is to be written once (`Elements.has_one_body`), all vectors are masked. `fold(carried)` does between the
    blocks of a long loop (`long_sums`).
    """
    width = elements.width
    starts_whole = elements.multiples.holds(begin)

    def place(index: ir.Value) -> Position:
        if starts_whole:
            elements.multiples.note(index)
        return Position(index, 1 if width > 1 else 0)

    if elements.has_one_body and not divisible and width > 1:

        def masked(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            mask = first_lanes(width, arith.subi(end, index))
            with elements.scope(), elements.valid(mask=mask):
                return body(place(index), values, mask)

        return in_blocks(begin, end, width, carried, masked, fold)
    rest = arith.remui(arith.subi(end, begin), index_constant(width))
    main_end = end if divisible or width == 1 else arith.subi(end, rest)

    def whole(index: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        with elements.scope():
            return body(place(index), values, None)

    results = in_blocks(begin, main_end, width, carried, whole, fold)
    if divisible or width == 1:
        return results
    some = arith.cmpi(arith.CmpIPredicate.ugt, rest, index_constant(0))
    tail = scf.IfOp(some, [v.type for v in carried], has_else=bool(carried))
    with ir.InsertionPoint(tail.then_block), elements.scope():
        mask = first_lanes(width, rest)
        with elements.valid(mask=mask):
            scf.yield_(body(place(main_end), results, mask))
    if carried:
        with ir.InsertionPoint(tail.else_block):
            scf.yield_(results)
    return list(tail.results)


COLUMNS = 32
"""Columns of a work item whose threads each walk through all rows, at least: two cache lines of floats."""


def column_blocks(columns: Expr, width: int) -> tuple[Expr, int]:
    """The number of blocks of columns that are work items of a kernel, and the columns of one: whole vectors.

    Each range of items reads anew what all columns share, such as indices: blocks that are narrow, or vectors cut in
    two, would cost more than another thread brings.
    """
    length = max(width, COLUMNS)
    return ceildiv(columns, length), length


def columns_of_items(
    elements: VectorElements, begin: ir.Value, end: ir.Value, columns: Expr
) -> tuple[ir.Value, ir.Value]:
    """The columns that lie in the blocks of a range of items (`column_blocks`)."""
    _, length = column_blocks(columns, elements.width)
    first, past = (arith.muli(item, index_constant(length)) for item in (begin, end))
    return first, arith.minui(past, elements.size_of(columns))


def vectors(
    elements: VectorElements,
    outer: Positions,
    begin: ir.Value,
    end: ir.Value,
    divisible: bool,
    body: Callable[[Elements, Positions], None],
    register: int,
) -> None:
    """`body` at each vector of [begin, end), in the row of some outer positions.

    register: the lanes of a register. Behind vectors of more than two, the rest is a loop over masked ones of a single
    register: one masked vector would be as much code as a whole one, and as much work for a few elements.
    """

    def over(elements: VectorElements, begin: ir.Value, end: ir.Value, divisible: bool) -> None:
        def at(position: Position, carried: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            body(elements, (*outer, position))
            return []

        over_lanes(elements, begin, end, divisible, [], at)

    if divisible or elements.has_one_body or elements.width <= 2 * register:
        over(elements, begin, end, divisible)
        return
    rest = arith.remui(arith.subi(end, begin), index_constant(elements.width))
    middle = arith.subi(end, rest)
    over(elements, begin, middle, True)
    single = replace(elements, width=register, has_one_body=True)
    if elements.multiples.holds(begin):
        single.multiples.note(middle)
    over(single, middle, end, False)


def first_lanes(width: int, count: ir.Value) -> ir.Value:
    """A mask of the first `count` lanes, of all where there are fewer."""
    return vector.create_mask(ir.VectorType.get([width], ir.IntegerType.get_signless(1)), [count])
