# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rematerialisation of values that only positions make, such as a causal mask, in the kernel that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.fusion import Loop, fusion_of, set_fusion
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GENERATORS
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.decisions import Pattern

REMATERIALIZE: Pattern[Generator] = Pattern(
    "rematerialize-generator", "what is made of positions and constants is computed again where it is read"
)

REMATERIALIZE_MASK: Pattern[Generator] = Pattern(
    "rematerialize-mask", "a mask made of integers and positions is computed again where it is read"
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
    return _cheap_call(REMATERIALIZE, value, functions)


def mask_maker_of(value: ir.Value, functions: Functions) -> ir.Operation | None:
    """The call of a cheap loop that makes `value`, a mask or what it adds, from integers and booleans."""
    return _cheap_call(REMATERIALIZE_MASK, value, functions)


def _cheap_call(pattern: Pattern[Generator], value: ir.Value, functions: Functions) -> ir.Operation | None:
    """The call that makes `value`, if it matches a pattern and is cheap to compute again."""

    def build(value: ir.Value) -> Generator | None:
        call = defining_op(root(value))
        return Generator(value, call, functions) if call is not None and call.name == "func.call" else None

    found = pattern.match(build, value)
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


@REMATERIALIZE_MASK.requires("the loop has one result")
def _mask_has_one_result(g: Generator) -> bool:
    return _has_one_result(g)


@REMATERIALIZE_MASK.requires("its result is read with the sizes that it has")
def _mask_is_read_unchanged(g: Generator) -> bool:
    return _is_read_unchanged(g)


@REMATERIALIZE_MASK.requires("its ops compute each element from elements, positions and constants")
def _mask_is_computed_in_place(g: Generator) -> bool:
    return _ops_compute_in_place(g)


@REMATERIALIZE_MASK.requires("what it reads are integers and booleans")
def _mask_reads_integers(g: Generator) -> bool:
    return all(isinstance(element_type_of(v), ir.IntegerType) for v in g.call.operands)


@dataclass(frozen=True)
class Rematerialized:
    """A fusion with loops that it reads inside, the values that it reads, and the calls of those loops."""

    function: func.FuncOp
    operands: list[ir.Value]
    inside: list[ir.Operation]


def with_rematerialized(call: ir.Operation, functions: Functions, name: str, masks: bool = False) -> Rematerialized:
    """The fusion that `call` runs with what it reads of generators inside, and of loops that make masks if asked for.

    It is a new function of that name, at the insertion point, if there is anything to put inside.
    """
    function = called(call, functions)
    inlined = _Inlined(functions, masks)
    inside = [v for v in call.operands if inlined.maker(v) is not None]
    if not inside:
        return Rematerialized(function, list(call.operands), [])
    operands = [v for v in call.operands if v not in inside]
    for value in inside:
        operands += [v for v in inlined.reads(value) if v not in operands]
    new = func.FuncOp(
        name, ir.FunctionType.get([v.type for v in operands], function.type.results), visibility="private"
    )
    block = new.add_entry_block()
    set_fusion(new, fusion_of(function))
    values = dict(zip(operands, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for v in inside:
            values[v] = inlined.build(v, values)
        func.ReturnOp(
            _copied(function, {a: values[v] for a, v in zip(_arguments(function), call.operands, strict=True)})
        )
    makers = [maker for v in inside if (maker := inlined.maker(v)) is not None]
    return Rematerialized(new, operands, makers)


def _arguments(function: func.FuncOp) -> list[ir.Value]:
    return list(function.entry_block.arguments)


@dataclass(frozen=True)
class _Inlined:
    """The values that are computed inside: generators' results, and those of loops that make masks."""

    functions: Functions
    masks: bool

    def maker(self, value: ir.Value) -> ir.Operation | None:
        """The call that makes a value, if it is to be computed inside."""
        found = generator_of(value, self.functions)
        return mask_maker_of(value, self.functions) if found is None and self.masks else found

    def reads(self, value: ir.Value) -> list[ir.Value]:
        """The values outside that a value is made of."""
        maker = self.maker(value)
        return [value] if maker is None else [read for v in maker.operands for read in self.reads(v)]

    def build(self, value: ir.Value, values: dict[ir.Value, ir.Value]) -> ir.Value:
        """A value computed inside, at the insertion point, from those of `values`."""
        maker = self.maker(value)
        if maker is None:
            return values[value]
        function = called(maker, self.functions)
        operands = [self.build(v, values) for v in maker.operands]
        return _copied(function, dict(zip(_arguments(function), operands, strict=True)))[0]


def _copied(function: func.FuncOp, values: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """The ops of a function at the insertion point, its arguments being `values`; returns what it returns."""
    *operations, last = function.entry_block.operations
    for op in operations:
        clone = op.clone()
        for position, value in enumerate(op.operands):
            clone.operands[position] = values[value]
        values.update(zip(op.results, clone.results, strict=True))
    return [values[v] for v in last.operands]
