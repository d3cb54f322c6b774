# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches in the work of a block. What holds a barrier has to go the same way in all of its threads."""

from __future__ import annotations

from collections.abc import Callable

from shlo_disc.lowering.positions import index_constant
from shlo_disc.lowering_gpu.grid import THREADS, thread
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


def below(a: ir.Value, b: ir.Value) -> ir.Value:
    """Tells whether an index is less than another."""
    return arith.cmpi(arith.CmpIPredicate.ult, a, b)


def ceil_div(a: ir.Value, b: ir.Value) -> ir.Value:
    """The number of parts of size b, the last of which may be smaller, that an index is divided into."""
    return arith.divui(arith.addi(a, arith.subi(b, index_constant(1))), b)
