# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structure of a fusion, up to the names of its sizes: fusions of one structure may share a kernel."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from shlo_disc.shape_dialect.dialect.fusion import FUSION
from shlo_disc.shape_dialect.dialect.ops import FusionAttr, WindowAttr
from shlo_disc.shape_dialect.dialect.records import dictionary_of
from shlo_disc.shape_dialect.dialect.types import (
    dim_attr,
    dims_of,
    element_type_of,
    has_encoding,
    tensor_type,
)
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

_NAMES = frozenset({"sym_name", "sym_visibility", "function_type"})
"""Attributes that name a function, or follow from its block."""


class SizeNames:
    """Names `n0`, `n1`, ... for sizes that are no numbers, in the order in which they come. `meaning` has the sizes."""

    def __init__(self) -> None:
        self.meaning: dict[str, Expr] = {}
        self._names: dict[Expr, Expr] = {}
        self._types: dict[ir.Type, ir.Type] = {}
        self._attributes: dict[ir.Attribute, ir.Attribute] = {}

    def size(self, size: Expr) -> Expr:
        """The name of a size; a number stays."""
        if size.constant is not None:
            return size
        if size not in self._names:
            name = f"n{len(self._names)}"
            self._names[size] = Expr.symbol(name)
            self.meaning[name] = size
        return self._names[size]

    def type(self, type_: ir.Type) -> ir.Type:
        """A type with its sizes named."""
        if type_ not in self._types:
            named = type_
            if has_encoding(type_):
                named = tensor_type([self.size(d) for d in dims_of(type_)], element_type_of(type_))
            self._types[type_] = named
        return self._types[type_]

    def attribute(self, attribute: ir.Attribute) -> ir.Attribute:
        """An attribute with the sizes in it named."""
        if attribute not in self._attributes:
            self._attributes[attribute] = self._named(attribute)
        return self._attributes[attribute]

    def _named(self, attribute: ir.Attribute) -> ir.Attribute:
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            return dim_attr(self.size(Expr.parse(attribute.value)))
        if isinstance(attribute, ir.ArrayAttr):
            return ir.ArrayAttr.get([self.attribute(a) for a in attribute])
        if isinstance(attribute, ir.DictAttr):
            return ir.DictAttr.get({name: self.attribute(entry) for name, entry in dictionary_of(attribute).items()})
        if isinstance(attribute, FusionAttr):
            return FusionAttr.get(attribute.kind, self.attribute(attribute.roles.maybe_downcast()))
        if isinstance(attribute, WindowAttr):
            return WindowAttr.get(self.attribute(attribute.window.maybe_downcast()))
        return attribute


class Numbering:
    """Describes ops by hashable keys in which values are numbers, in the order in which they are defined.

    names: None where the sizes have to be the same.
    """

    def __init__(self, values: Iterable[ir.Value] = (), names: SizeNames | None = None):
        self._names = names
        self.numbers: dict[ir.Value, int] = {value: number for number, value in enumerate(values)}

    def block(self, block: ir.Block) -> Hashable:
        """The key of a block: its arguments and its ops."""
        arguments = tuple(map(self.define, block.arguments))
        return arguments, tuple(self.op(op.operation) for op in block.operations)

    def op(self, op: ir.Operation) -> Hashable:
        """The key of an op. Raises KeyError where it reads a value without a number."""
        operands = tuple(self.numbers[v] for v in op.operands)
        return op.name, operands, self.parts(op), tuple(map(self.define, op.results))

    def parts(self, op: ir.Operation) -> Hashable:
        """The key of an op's attributes and regions."""
        attributes = tuple((name, self._attribute(a)) for name, a in op.attributes.items())
        return attributes, tuple(tuple(map(self.block, region.blocks)) for region in op.regions)

    def define(self, value: ir.Value) -> ir.Type:
        """Give a value the next number; returns its type."""
        self.numbers[value] = len(self.numbers)
        return value.type if self._names is None else self._names.type(value.type)

    def _attribute(self, attribute: ir.Attribute) -> ir.Attribute:
        return attribute if self._names is None else self._names.attribute(attribute)


class Structure:
    """The structure of a function. `key` is equal for functions that differ in the names of their sizes alone.

    names: None where the sizes have to be the same. numbering: describes the ops, in full where it is left out.
    """

    def __init__(self, function: func.FuncOp, names: SizeNames | None, numbering: Numbering | None = None):
        fusion = function.attributes[FUSION]
        block = (numbering or Numbering(names=names)).block(function.entry_block)
        self.key: Hashable = (block, fusion if names is None else names.attribute(fusion))


def renamed(function: func.FuncOp, names: SizeNames) -> tuple[ir.Module, func.FuncOp]:
    """A copy of a function with its sizes named, in a module of its own."""
    holder = ir.Module.create()
    with ir.InsertionPoint(holder.body):
        copy = function.operation.clone()
    _rename(copy, names)
    types = [[v.type for v in values] for values in _signature(copy)]
    copy.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    return holder, copy.opview


def _rename(op: ir.Operation, names: SizeNames) -> None:
    for name, attribute in list(op.attributes.items()):
        named = attribute if name in _NAMES else names.attribute(attribute)
        if named != attribute:
            op.attributes[name] = named
    for result in op.results:
        result.set_type(names.type(result.type))
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                argument.set_type(names.type(argument.type))
            for inner in block.operations:
                _rename(inner.operation, names)


def _signature(function: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    block = function.regions[0].blocks[0]
    return list(block.arguments), list(block.operations[len(block.operations) - 1].operands)
