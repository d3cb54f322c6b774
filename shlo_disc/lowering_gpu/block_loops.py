# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches in the work of a block. What holds a barrier has to go the same way in all of its threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.grid import THREADS, thread
from shlo_disc.lowering_gpu.index_math import below, plus
from shlo_disc.shape_dialect.mlir import arith, ir, scf

Values = list[ir.Value]


def counted(
    begin: ir.Value, end: ir.Value, step: ir.Value, carried: Values, body: Callable[[ir.Value, Values], Values]
) -> Values:
    """A loop over [begin, end); `body(index, carried)` gives what it carries on."""
    loop = scf.ForOp(begin, end, step, carried)
    with ir.InsertionPoint(loop.body):
        scf.yield_(body(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def in_batches(count: ir.Value, largest: int, carried: Values, body: Callable[[ir.Value, Values], Values]) -> Values:
    """`body(item, carried)` for all items below `count` in their order, `largest`, a power of two, one behind the other
    without a branch, so that what they read is on its way at once; then half as many where there are, and so on."""

    def batch(first: ir.Value, size: int, carried: Values) -> Values:
        for number in range(size):
            carried = body(plus(first, number), carried)
        return carried

    begin = arith.andi(count, index_constant(-largest))
    carried = counted(index_constant(0), begin, index_constant(largest), carried, lambda i, v: batch(i, largest, v))
    size = largest // 2
    while size:
        taken = arith.andi(count, index_constant(size))
        choice = scf.IfOp(below(index_constant(0), taken), [v.type for v in carried], has_else=True)
        with ir.InsertionPoint(choice.then_block):
            scf.yield_(batch(begin, size, carried))
        with ir.InsertionPoint(choice.else_block):
            scf.yield_(carried)
        begin, carried, size = arith.addi(begin, taken), list(choice.results), size // 2
    return carried


def each_item(count: ir.Value, body: Callable[[ir.Value], object]) -> None:
    """`body(item)` for all items below `count`, each by one thread of the block, the same one in all such loops."""

    def item(index: ir.Value, _: Values) -> Values:
        body(index)
        return []

    counted(thread(), count, index_constant(THREADS), [], item)


def when(condition: ir.Value, body: Callable[[], None]) -> None:
    """`body()` where the condition holds."""
    branch = scf.IfOp(condition, [])
    with ir.InsertionPoint(branch.then_block):
        body()
        scf.yield_([])


def either(condition: ir.Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """One of two ways."""
    choice = scf.IfOp(condition, [], has_else=True)
    for block, version in ((choice.then_block, then), (choice.else_block, otherwise)):
        with ir.InsertionPoint(block):
            version()
            scf.yield_([])


def chosen(
    condition: ir.Value, types: Sequence[ir.Type], then: Callable[[], Values], otherwise: Callable[[], Values]
) -> Values:
    """The values of one of two ways."""
    choice = scf.IfOp(condition, list(types), has_else=True)
    for block, values in ((choice.then_block, then), (choice.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.yield_(values())
    return list(choice.results)


def as_long_as(start: Values, goes_on: Callable[[Values], ir.Value], body: Callable[[Values], Values]) -> Values:
    """A loop that carries values for as long as they say so."""
    types = [v.type for v in start]
    loop = scf.WhileOp(types, start)
    before = loop.before.blocks.append(*types)
    with ir.InsertionPoint(before):
        carried = list(before.arguments)
        scf.condition(goes_on(carried), carried)
    after = loop.after.blocks.append(*types)
    with ir.InsertionPoint(after):
        scf.yield_(body(list(after.arguments)))
    return list(loop.results)


def ceil_div(a: ir.Value, b: ir.Value) -> ir.Value:
    """The number of parts of size b, the last of which may be smaller, that an index is divided into."""
    return arith.divui(arith.addi(a, arith.subi(b, index_constant(1))), b)
