# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The amount of arithmetic that a program does, over the symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shlo_disc.shape_dialect.dialect.library import is_narrow_product, library_function_of
from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Facts
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.control_flow.counted_loops import count_of

Functions = Mapping[str, func.FuncOp]
_ONCE = Expr.const(1)


def flops_in(module: ir.Module, entry: ir.Block, facts: Facts) -> Expr:
    """The arithmetic of one run of a program, with the limits of sizes that each iteration of a loop reads anew."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    return facts.limits.largest(_flops_in_block(entry, functions))


def _flops_in_block(block: ir.Block, functions: Functions) -> Expr:
    each = (times * flops_of(op, functions) for op, times in repeated_ops(block, functions))
    return Expr.from_terms(term for flops in each for term in flops.terms)


def repeated_ops(block: ir.Block, functions: Functions, times: Expr = _ONCE) -> Iterator[tuple[ir.OpView, Expr]]:
    """The ops of a block and of what it calls and repeats, with how often each runs.

    The body of a loop that runs an unknown number of times counts once; branches of choices are not among them.
    """
    for op in block.operations:
        yield op, times
        if op.operation.name == "func.call":
            yield from repeated_ops(functions[callee_of(op)].entry_block, functions, times)
        elif op.operation.name == "stablehlo.while":
            count = count_of(op)
            yield from repeated_ops(nested_blocks(op)[1], functions, times * count.trip if count else times)


def flops_of(op: ir.OpView, functions: Functions) -> Expr:
    """The arithmetic of one run of an op on elements: a multiply-add is two, anything else one.

    A choice takes as much as the longest of its branches; what a loop does is counted with its body.
    """
    if op.operation.name in ("stablehlo.case", "stablehlo.if"):
        return Expr.maximum(*(_flops_in_block(branch, functions) for branch in nested_blocks(op)))
    if is_narrow_product(op):
        return 2 * library_function_of(op).parameters["k"] * product(dims_of(op.results[0]))
    definition = TABLE.get(op.operation.name)
    return Expr.const(0) if definition is None else definition.flops(op)


__all__ = ["Functions", "flops_in", "flops_of", "repeated_ops"]
