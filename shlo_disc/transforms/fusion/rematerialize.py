# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rematerialisation of values that only positions make, such as a causal mask, in the kernel that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect.fusion import Loop, fusion_of, set_fusion
from shlo_disc.shape_dialect.dialect.types import dims_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GENERATORS
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.decisions import Pattern

REMATERIALIZE: Pattern[Generator] = Pattern(
    "rematerialize-generator", "what is made of positions and constants is computed again where it is read"
)

MOST_OPS = 24
"""Ops of a fusion that is expensive to compute again."""

_IN_PLACE = ELEMENTWISE | BROADCASTS | GENERATORS
_EXPENSIVE = frozenset(
    "stablehlo." + n for n in ("cosine", "exponential", "log", "power", "remainder", "sine", "tan", "tanh")
)

Functions = Mapping[str, func.FuncOp]


@dataclass(frozen=True)
class Generator:
    """A call whose result is `value`, or a view of it."""

    value: ir.Value
    call: ir.Operation
    functions: Functions


def called(call: ir.Operation, functions: Functions) -> func.FuncOp:
    """The fusion that a call runs."""
    return functions[callee_of(call)]


def generator_of(value: ir.Value, functions: Functions) -> ir.Operation | None:
    """The call of a cheap loop that makes `value` from positions and constants alone, or from such values."""

    def build(value: ir.Value) -> Generator | None:
        call = defining_op(root(value))
        return Generator(value, call, functions) if call is not None and call.name == "func.call" else None

    found = REMATERIALIZE.match(build, value)
    return found.call if found is not None and _is_cheap(found) else None


def _operations(generator: Generator) -> list[ir.Operation]:
    *operations, _ = (op.operation for op in called(generator.call, generator.functions).entry_block.operations)
    return operations


def _is_cheap(generator: Generator) -> bool:
    names = [op.name for op in _operations(generator)]
    return len(names) <= MOST_OPS and _EXPENSIVE.isdisjoint(names)


@REMATERIALIZE.requires("the loop has one result")
def _has_one_result(g: Generator) -> bool:
    return isinstance(fusion_of(called(g.call, g.functions)), Loop) and len(g.call.results) == 1


@REMATERIALIZE.requires("its result is read with the sizes that it has")
def _is_read_unchanged(g: Generator) -> bool:
    return dims_of(root(g.value)) == dims_of(g.value)


@REMATERIALIZE.requires("its ops compute each element from elements, positions and constants")
def _ops_compute_in_place(g: Generator) -> bool:
    return all(op.name in _IN_PLACE for op in _operations(g))


@REMATERIALIZE.requires("what it reads is made so, too")
def _operands_are_generated(g: Generator) -> bool:
    return all(generator_of(v, g.functions) is not None for v in g.call.operands)


def with_rematerialized(call: ir.Operation, functions: Functions, name: str) -> tuple[func.FuncOp, list[int]]:
    """The fusion that `call` runs with what it reads of generators inside, and the operands that are left.

    It is a new function of that name, at the insertion point, if there is anything to put inside.
    """
    function = called(call, functions)
    inside = [i for i, v in enumerate(call.operands) if generator_of(v, functions) is not None]
    kept = [i for i in range(len(call.operands)) if i not in inside]
    if not inside:
        return function, kept
    arguments = list(function.entry_block.arguments)
    types = [arguments[i].type for i in kept]
    new = func.FuncOp(name, ir.FunctionType.get(types, function.type.results), visibility="private")
    block = new.add_entry_block()
    set_fusion(new, fusion_of(function))
    values = {arguments[i]: v for i, v in zip(kept, block.arguments, strict=True)}
    with ir.InsertionPoint(block):
        for i in inside:
            values[arguments[i]] = _inline(call.operands[i], functions)
        func.ReturnOp(_copied(function, values))
    return new, kept


def _inline(value: ir.Value, functions: Functions) -> ir.Value:
    call = defining_op(root(value))
    if call is None:
        raise CompilerError("fuse: an argument is not a generator's result")
    function = called(call, functions)
    operands = [_inline(v, functions) for v in call.operands]
    return _copied(function, dict(zip(function.entry_block.arguments, operands, strict=True)))[0]


def _copied(function: func.FuncOp, values: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """The ops of a function at the insertion point, its arguments being `values`; returns what it returns."""
    *operations, last = function.entry_block.operations
    for op in operations:
        clone = op.clone()
        for position, value in enumerate(op.operands):
            clone.operands[position] = values[value]
        values.update(zip(op.results, clone.results, strict=True))
    return [values[v] for v in last.operands]
