# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of the entry function."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shlo_disc.shape_dialect.custom_calls import PYTHON_CALLBACK
from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.utils.regions import constant_of, terminator_of


def drop_arguments(function: ir.OpView, positions: Collection[int]) -> None:
    """Take away arguments that nothing uses, with what is said of them."""
    block = function.regions[0].blocks[0]
    for position in sorted(positions, reverse=True):
        block.erase_argument(position)
    if "arg_attrs" in function.attributes:
        attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        kept = [a for position, a in enumerate(attributes) if position not in positions]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)
    set_function_type(function)


def add_arguments(function: ir.OpView, types: Sequence[ir.Type]) -> list[ir.Value]:
    """Arguments of these types behind those that there are, of which nothing is said."""
    block = function.regions[0].blocks[0]
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, *[ir.DictAttr.get({})] * len(types)])
    added = [block.add_argument(kind, function.location) for kind in types]
    set_function_type(function)
    return added


def set_function_type(function: ir.OpView) -> None:
    """Let a function say what its body takes and returns."""
    block = function.regions[0].blocks[0]
    inputs = [a.type for a in block.arguments]
    results = [v.type for v in terminator_of(block).operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def functions_as_arguments(function: ir.OpView, numbers: Sequence[int]) -> None:
    """Replace the numbers of functions of Python, which constants are, by as many arguments.

    Calls that nothing needs may be gone. Any other number is part of the program, as one that it computes.
    """
    if not numbers:
        return
    kind = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
    arguments = dict(zip(numbers, add_arguments(function, [kind] * len(numbers)), strict=True))
    for block in all_blocks(function.regions[0].blocks[0]):
        for op in block.operations:
            if op.operation.name != "stablehlo.custom_call" or _target_of(op) != PYTHON_CALLBACK:
                continue
            constant = constant_of(op.operands[0])
            number = None if constant is None else int(array_of(constant))
            if number in arguments:
                op.operands[0] = arguments[number]


def _target_of(op: ir.OpView) -> str:
    return str(ir.StringAttr(op.attributes["call_target_name"]).value)
