# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From any StableHLO module to one `func.func @main`: calls inlined, composites opened, CHLO rewritten."""

from __future__ import annotations

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.mlir import has_chlo, ir, passmanager
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.control_flow.barriers import thin_barriers
from shlo_disc.transforms.control_flow.carried import drop_carried
from shlo_disc.transforms.control_flow.known_branches import open_known_branches

from .chlo import legalise_chlo
from .entry_arguments import drop_arguments
from .opened_calls import check_opened_calls
from .resolve import erase_unused, resolve
from .tokens import branches_without_tokens

NORMALISE = "builtin.module(func.func(stablehlo-legalize-composite-to-call),inline{default-pipeline=},symbol-dce,cse)"


def entry_function(module: ir.Module) -> ir.OpView:
    """The function to compile: `@main`, else the only public one. Raises ProgramError."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    named = [f for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == "main"]
    public = named or [f for f in functions if "sym_visibility" not in f.attributes]
    if len(public) != 1:
        raise ProgramError(f"the module must have a function @main or exactly one public function, not {len(public)}")
    if not public[0].regions[0].blocks:
        raise ProgramError("the entry function has no body")
    return public[0]


def choose_platform(module: ir.Module, index: int) -> None:
    """Make a module for several platforms, which takes the number of one as its first argument, one for that platform.

    Normalises the module: what is for other platforms only is gone.
    """
    function = entry_function(module)
    block = function.regions[0].blocks[0]
    number = block.arguments[0]
    with ir.InsertionPoint.at_block_begin(block):
        tensor = ir.RankedTensorType(number.type)
        value = ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(tensor.element_type, index))
        constant = ir.Operation.create("stablehlo.constant", results=[tensor], attributes={"value": value})
    number.replace_all_uses_with(constant.result)
    drop_arguments(function, (0,))
    normalise(module)
    open_known_branches(block)


def normalise(module: ir.Module) -> None:
    """Inline everything into the entry function and drop the rest, in place."""
    entry = entry_function(module)
    for function in module.body.operations:
        if function.operation.name == "func.func" and function != entry:
            function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    check_opened_calls(module, ir.StringAttr(entry.attributes["sym_name"]).value)
    try:
        if has_chlo(module.context):
            legalise_chlo(module)
        passes = passmanager.PassManager.parse(NORMALISE)
        passes.enable_verifier(False)  # the program was verified when it was read, and is when its import is done
        passes.run(module.operation)
    except ir.MLIRError as error:
        found = [d.message.strip() for d in error.error_diagnostics]
        raise ProgramError(f"the program cannot be normalised: {'; '.join(found) or error}") from None
    if len(entry.regions[0].blocks) == 1:
        block = entry.regions[0].blocks[0]
        resolve(block)
        branches_without_tokens(block)
        thin_barriers(block)
        drop_carried(block)
        erase_unused(block)


def _is_symbol(name: str) -> bool:
    try:
        Expr.symbol(name)
    except ProgramError:
        return False
    return True


def global_constant_names(module: ir.Module) -> dict[tuple[int, int], str]:
    """The dim variables' names in a jax.export module: (argument, axis) of `@main` -> "b".

    jax.export reads each dim variable with `get_dimension_size` in `@main` and passes it to a function whose argument
    is marked `jax.global_constant`. Helpers by which it computes variables, as of `2*b`, have marks without names.
    """
    entry = entry_function(module)
    functions = {
        ir.StringAttr(op.attributes["sym_name"]).value: op
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    names = {}
    arguments = list(entry.regions[0].blocks[0].arguments)
    for op in entry.regions[0].blocks[0].operations:
        if op.operation.name != "func.call":
            continue
        callee = functions[callee_of(op)]
        if "arg_attrs" not in callee.attributes:
            continue
        for attributes, operand in zip(ir.ArrayAttr(callee.attributes["arg_attrs"]), op.operands, strict=True):
            attributes = ir.DictAttr(attributes)
            source = operand.owner
            if "jax.global_constant" not in attributes or isinstance(source, ir.Block):
                continue
            if not isinstance(attributes["jax.global_constant"], ir.StringAttr):
                continue
            if source.name == "stablehlo.get_dimension_size" and source.operands[0] in arguments:
                axis = ir.IntegerAttr(source.attributes["dimension"]).value
                name = ir.StringAttr(attributes["jax.global_constant"]).value
                if _is_symbol(name):
                    names[(arguments.index(source.operands[0]), axis)] = name
    return names
