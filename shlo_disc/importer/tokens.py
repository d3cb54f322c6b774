# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs without tokens: what they order are calls with side effects, and these keep the order of the program."""

from __future__ import annotations

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks
from shlo_disc.shape_dialect.utils.regions import terminator_of

from .entry_arguments import drop_arguments


def tokens_as_arrays(function: ir.OpView) -> None:
    """Make every token that `function` takes or returns a `tensor<0xi1>`, in place, which is what JAX passes."""
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


def without_tokens(function: ir.OpView) -> None:
    """Take away the tokens that `function` takes and returns for ordered effects, in place."""
    block = function.regions[0].blocks[0]
    terminator = terminator_of(block)
    tokens = [i for i, argument in enumerate(block.arguments) if _is_token(argument)]
    with function.context, ir.Location.unknown():
        with ir.InsertionPoint.at_block_begin(block):
            for index in tokens:
                token = ir.Operation.create("stablehlo.create_token", results=[block.arguments[index].type])
                block.arguments[index].replace_all_uses_with(token.result)
        with ir.InsertionPoint(terminator), terminator.location:
            kept = [value for value in terminator.operands if not _is_token(value)]
            ir.Operation.create(terminator.operation.name, operands=kept)
        returned = [not _is_token(value) for value in terminator.operands]
        terminator.operation.erase()
        if "res_attrs" in function.attributes:
            said = ir.ArrayAttr(function.attributes["res_attrs"])
            function.attributes["res_attrs"] = ir.ArrayAttr.get(
                [a for a, keep in zip(said, returned, strict=True) if keep]
            )
        drop_arguments(function, tokens)


def branches_without_tokens(block: ir.Block) -> None:
    """Branches in a block, and in the blocks of its loops and branches, give no tokens any more, in place."""
    for op in list(block.operations):
        for nested in nested_blocks(op):
            branches_without_tokens(nested)
        if op.operation.name in ("stablehlo.case", "stablehlo.if") and any(_is_token(r) for r in op.results):
            _drop_tokens(op)


def _drop_tokens(branch: ir.OpView) -> None:
    kept = [i for i, result in enumerate(branch.results) if not _is_token(result)]
    for block in nested_blocks(branch):
        old = terminator_of(block)
        with ir.InsertionPoint(old):
            ir.Operation.create("stablehlo.return", operands=[old.operands[i] for i in kept], loc=old.location)
        old.operation.erase()
    with ir.InsertionPoint(branch), branch.location:
        new = ir.Operation.create(
            branch.operation.name,
            results=[branch.results[i].type for i in kept],
            operands=list(branch.operands),
            attributes={name: branch.attributes[name] for name in branch.attributes},
            regions=len(branch.regions),
        )
        token = ir.Operation.create("stablehlo.create_token", results=[ir.Type.parse("!stablehlo.token")]).result
    for block, region in zip(nested_blocks(branch), new.regions, strict=True):
        block.append_to(region)
    values = dict(zip(kept, new.results, strict=True))
    for i, result in enumerate(branch.results):
        result.replace_all_uses_with(values.get(i, token))
    branch.operation.erase()


def _is_token(value: ir.Value) -> bool:
    return str(value.type) == "!stablehlo.token"
