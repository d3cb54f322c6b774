# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens among the arguments and results of a program of JAX, which passes arrays without elements in their place.

What tokens order are calls with side effects, and these keep the order of the program.
"""

from __future__ import annotations

from shlo_disc.mlir import ir


def tokens_as_arrays(function: ir.OpView) -> None:
    """Make every token that `function` takes or returns a `tensor<0xi1>`, in place."""
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1]
    if not any(_is_token(value) for value in (*block.arguments, *terminator.operands)):
        return
    with function.context, ir.Location.unknown():
        array = ir.RankedTensorType.get([0], ir.IntegerType.get_signless(1))
        with ir.InsertionPoint.at_block_begin(block):
            for argument in block.arguments:
                if _is_token(argument):
                    made = ir.Operation.create("stablehlo.create_token", results=[argument.type])
                    argument.replace_all_uses_with(made.result)
                    argument.set_type(array)
        with ir.InsertionPoint(terminator):
            empty = {"value": ir.Attribute.parse("dense<> : tensor<0xi1>")}
            for index, value in enumerate(terminator.operands):
                if _is_token(value):
                    made = ir.Operation.create("stablehlo.constant", results=[array], attributes=empty)
                    terminator.operands[index] = made.result
        inputs, results = ([v.type for v in values] for values in (block.arguments, terminator.operands))
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _is_token(value: ir.Value) -> bool:
    return str(value.type) == "!stablehlo.token"
