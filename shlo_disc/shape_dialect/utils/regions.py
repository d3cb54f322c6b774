# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of functions and ops, and what they use from outside."""

from __future__ import annotations

from collections.abc import Iterator

from shlo_disc.shape_dialect.mlir import ir


def terminator_of(block: ir.Block) -> ir.OpView:
    """The last op of a block."""
    return block.operations[len(block.operations) - 1]


def captured(body: ir.Block) -> Iterator[tuple[ir.Operation, int, ir.Value]]:
    """The operands of a body's ops that are defined outside of it: (op, position, value)."""
    own = {*body.arguments, *(r for op in body.operations for r in op.results)}
    for op in body.operations:
        for position, value in enumerate(op.operands):
            if value not in own:
                yield op.operation, position, value


def copy_body(source: ir.Block, region: ir.Region, terminator: str = "stablehlo.return") -> None:
    """Make a body, of a function or an op, that of another, which ends with the op `terminator`."""
    body = ir.Block.create_at_start(region, [a.type for a in source.arguments])
    mapping = dict(zip(source.arguments, body.arguments, strict=True))
    *ops, last = source.operations
    with ir.InsertionPoint(body):
        for op in ops:
            clone = op.operation.clone()
            for position, value in enumerate(op.operands):
                clone.operands[position] = mapping[value]
            mapping.update(zip(op.results, clone.results, strict=True))
        ir.Operation.create(terminator, operands=[mapping[v] for v in last.operands])


def is_constant(op: ir.Operation | ir.OpView) -> bool:
    """Tells whether an op is a `stablehlo.constant`."""
    return bool(op.operation.name == "stablehlo.constant")


def constant_of(value: ir.Value) -> ir.Operation | None:
    """The `stablehlo.constant` that defines `value`; None for any other value."""
    owner = value.owner
    return owner.operation if not isinstance(owner, ir.Block) and is_constant(owner) else None


def called_function(op: ir.OpView) -> ir.OpView:
    """The function that a custom call names as its computation."""
    name = ir.FlatSymbolRefAttr(ir.ArrayAttr(op.attributes["called_computations"])[0]).value
    root = op.operation
    while root.parent is not None:
        root = root.parent.operation
    return ir.SymbolTable(root)[name]


def is_condition(block: ir.Block) -> bool:
    """Tells whether a block decides if a loop goes on."""
    owner = block.owner
    return owner.operation.name == "stablehlo.while" and owner.regions[0].blocks[0] == block


def main_function(module: ir.Module) -> ir.OpView:
    """The public entry function."""
    functions = (op for op in module.body.operations if op.operation.name == "func.func")
    return next(f for f in functions if str(f.attributes.get("sym_visibility")) != '"private"')


def entry_block(module: ir.Module) -> ir.Block:
    """The body of the entry function."""
    return main_function(module).regions[0].blocks[0]


def callee_of(call: ir.OpView | ir.Operation) -> str:
    """The name of the function that a call runs."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def is_fixed(value: ir.Value) -> bool:
    """Tells whether a value is an argument of the program or a constant, which may be packed ahead of a call."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation.name == "func.func"
    return is_constant(owner)
