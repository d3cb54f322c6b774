# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The amount of arithmetic that a program does, over the symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shlo_disc.shape_dialect.dialect.types import dims_of, product
from shlo_disc.shape_dialect.mlir import func, ir, stablehlo
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.convolution import convolution_of
from shlo_disc.shape_dialect.utils.regions import nested_blocks
from shlo_disc.transforms.control_flow.counted_loops import count_of

_MOVES = frozenset(
    {"broadcast_in_dim", "concatenate", "constant", "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_iota",
     "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather", "iota", "pad",
     "real_dynamic_slice", "reshape", "return", "reverse", "scatter", "slice", "transpose", "while"}
)  # fmt: skip
"""Ops that do no arithmetic on elements; what a loop does is counted with its body."""

Functions = Mapping[str, func.FuncOp]
_ONCE = Expr.const(1)


def flops_in(module: ir.Module, entry: ir.Block) -> Expr:
    """The arithmetic of one run of a program."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    return _flops_in_block(entry, functions)


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
            yield from repeated_ops(
                functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value].entry_block, functions, times
            )
        elif op.operation.name == "stablehlo.while":
            count = count_of(op)
            yield from repeated_ops(nested_blocks(op)[1], functions, times * count.trip if count else times)


def flops_of(op: ir.OpView, functions: Functions) -> Expr:
    """The arithmetic of one run of an op on elements: a multiply-add is two, anything else one.

    A choice takes as much as the longest of its branches.
    """
    name = op.operation.name.removeprefix("stablehlo.")
    if name == op.operation.name or name in _MOVES:
        return Expr.const(0)
    if name in ("case", "if"):
        return Expr.maximum(*(_flops_in_block(branch, functions) for branch in nested_blocks(op)))
    if not op.results or not isinstance(op.results[0].type, ir.RankedTensorType):
        return Expr.const(0)
    if name == "dot_general":
        axes = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"]).lhs_contracting_dimensions
        left = dims_of(op.operands[0])
        return 2 * _elements(op.results[0]) * product(tuple(left[a] for a in axes))
    if name in ("convolution", "dynamic_conv"):
        kernel = dims_of(op.operands[1])
        features = kernel[convolution_of(op).kernel[-1]]
        return 2 * _elements(op.results[0]) * product(kernel) // features
    if name == "reduce":
        return _elements(op.operands[0]) * (len(op.operands) // 2)
    if name in ("reduce_window", "select_and_scatter"):
        window = integers(op.attributes["window_dimensions"]) if "window_dimensions" in op.attributes else ()
        return _elements(op.results[0]) * product(tuple(map(Expr.const, window)))
    return _elements(op.results[0])


def _elements(value: ir.Value) -> Expr:
    return product(dims_of(value))


__all__ = ["Functions", "flops_in", "flops_of", "repeated_ops"]
