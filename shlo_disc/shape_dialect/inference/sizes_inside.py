# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are read from data inside of a loop or branch: each has a limit that is known before, and stays inside."""

from __future__ import annotations

from shlo_disc.errors import Unsupported, UnsupportedError
from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks, symbols_read_in
from shlo_disc.shape_dialect.ops.values import bound_elements
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.symbolic.limits import NoLimit
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import terminator_of
from shlo_disc.shape_dialect.utils.windows import window_sizes

STAYS_INSIDE = (
    "scatter the elements into an array of the size of the mask; under jax.grad, use jax.checkpoint on the body"
)
"""The advice where such a size would leave its block."""


def limit_count(bind: ir.OpView, facts: Facts) -> None:
    """Record that a size, read inside of a loop or branch, counts the true elements of a mask, of which there are no
    more than the mask has. Raises UnsupportedError for any other size."""
    for size in bound_elements(bind):
        selections = [op for op in bind.operation.block.operations if _selects(op, size)]
        if not selections:
            reason = "a size that is read inside of a loop or branch is no number of elements that a mask selects"
            _refuse(bind, reason, "compute the size before the loop or branch")
        facts.limit(str(size), dims_of(selections[0].operands[0])[0])


def _selects(op: ir.OpView, size: Expr) -> bool:
    return op.operation.name == "disc.nonzero" and dims_of(op.results[0]) == (size,)


def check_sizes_inside(op: ir.OpView, facts: Facts) -> None:
    """Check a loop or branch whose blocks have their sizes. Raises UnsupportedError, naming the op at fault."""
    names = symbols_read_in(op)
    if not names:
        return
    for block in nested_blocks(op):
        for inner in block.operations:
            for size in sizes_stated(inner):
                _check_has_limit(size, inner, facts)
        for value in terminator_of(block).operands:
            if any(not names.isdisjoint(size.symbols()) for size in dims_of(value)):
                shape = ", ".join(map(str, dims_of(value)))
                reason = f"an array of shape ({shape}) leaves it, whose size is read from data in each run of its body"
                _refuse(op, reason, STAYS_INSIDE)


def sizes_stated(op: ir.OpView) -> list[Expr]:
    """The sizes in the types of the results of an op and in its attributes."""
    sizes = [*(size for result in op.results for size in dims_of(result)), *window_sizes(op)]
    return [*sizes, *dims_of_attr(op.attributes["dims"])] if op.operation.name == "disc.shape" else sizes


def _check_has_limit(size: Expr, op: ir.OpView, facts: Facts) -> None:
    try:
        facts.limits.largest(size)
    except NoLimit as error:
        reason = f"its size {size}, read from data inside of a loop or branch, has no limit known before: {error}"
        _refuse(op, reason, "")


def _refuse(op: ir.OpView, reason: str, advice: str) -> None:
    raise UnsupportedError([Unsupported(op.operation.name, "", source_line(op.location), reason, advice)])


__all__ = ["STAYS_INSIDE", "check_sizes_inside", "limit_count", "sizes_stated"]
