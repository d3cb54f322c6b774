# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for all edits of a program that is being reduced: its ops in order, its signature, and tidying up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.utils.regions import terminator_of

ERASED = "reduce.erased"
"""The attribute of an op without which the program shall be, though it has an effect."""


def functions(module: ir.Operation) -> list[ir.Operation]:
    """The functions of a module that have a body."""
    found = [op.operation for op in module.regions[0].blocks[0].operations]
    return [f for f in found if f.name == "func.func" and len(f.regions[0].blocks)]


def main_of(module: ir.Operation) -> ir.Operation:
    """The function that a program begins with: the one called main, or else the first."""
    found = functions(module)
    return next((f for f in found if ir.StringAttr(f.attributes["sym_name"]).value == "main"), found[0])


def body_of(function: ir.Operation) -> ir.Block:
    """The first block of a function."""
    return function.regions[0].blocks[0]


def ops_in(module: ir.Operation) -> list[ir.Operation]:
    """All ops of all functions, outer ones first, without terminators."""
    return [op for function in functions(module) for op in _inside(function)]


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations)[:-1]:
                yield inner.operation
                yield from _inside(inner.operation)


def is_used(value: ir.Value) -> bool:
    """Tells whether anything reads a value."""
    return next(iter(value.uses), None) is not None


def has_effect(op: ir.Operation) -> bool:
    """Tells whether an op does something else than to give results: one without results, or a call that says so."""
    attributes = op.attributes
    if "has_side_effect" in attributes and ir.BoolAttr(attributes["has_side_effect"]).value:
        return True
    return not len(op.results) or any(has_effect(inner) for inner in _inside(op))


def tidy(module: ir.Operation) -> None:
    """Erase the ops that nothing reads, and those that are marked, from the last to the first."""
    for function in functions(module):
        _tidy(function)


def _tidy(op: ir.Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in reversed(list(block.operations)[:-1]):
                if any(map(is_used, inner.results)):
                    _tidy(inner.operation)
                elif ERASED in inner.attributes or not has_effect(inner.operation):
                    inner.operation.erase()
                else:
                    _tidy(inner.operation)


def replace_terminator(block: ir.Block, values: Sequence[ir.Value]) -> None:
    """Have a block end with other values."""
    old = terminator_of(block).operation
    ir.Operation.create(old.name, operands=list(values), ip=ir.InsertionPoint(old), loc=old.location)
    old.erase()


def update_signature(
    function: ir.Operation, arguments: Collection[int] | None = None, results: Collection[int] | None = None
) -> None:
    """Have a function's type say what its body takes and returns.

    arguments, results: which of those that it had are left, for their attributes; None means all.
    """
    block = body_of(function)
    inputs, outputs = [a.type for a in block.arguments], [v.type for v in terminator_of(block).operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs))
    for key, kept, count in (("arg_attrs", arguments, len(inputs)), ("res_attrs", results, len(outputs))):
        if key in function.attributes:
            said = list(ir.ArrayAttr(function.attributes[key]))
            left = said if kept is None else [said[i] for i in sorted(kept)]
            function.attributes[key] = ir.ArrayAttr.get([*left, *[ir.DictAttr.get({})] * (count - len(left))])


def splat(type_: ir.Type, first: Any = 1) -> ir.DenseElementsAttr | None:
    """A tensor that has the same number everywhere; None where the type is no static one of plain numbers.

    Booleans are false: loops end.
    """
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    element = type_.element_type
    try:
        if isinstance(element, ir.IntegerType) and element.width == 1:
            return ir.DenseElementsAttr.get_splat(type_, ir.BoolAttr.get(False))
        if isinstance(element, ir.IntegerType):
            return ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, int(first)))
        return ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, float(first)))
    except (ir.MLIRError, TypeError, ValueError):
        return None
