# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The semantics of StableHLO, written from its specification: a value is a function from an index to an element.

Nothing here comes from `shlo_disc`'s own definitions of the ops (index maps, size rules, builders); it only reads the
types, whose sizes are symbolic expressions. An op states the constraints of the specification on its sizes with
`Scope.require`, and every read of an operand has to be shown to lie inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr
from tests.proofs.elements import compared, converted, elementwise, limits, literal, sort_of
from tests.proofs.scope import Index, Scope, Term, constant_of, inside, number


@dataclass(frozen=True)
class Tensor:
    """A value: its sizes, its element type, and its elements."""

    dims: tuple[Term, ...]
    element: str
    at: Callable[[Index], Term]


@dataclass(frozen=True)
class Call:
    """An op with its operands' values, and the sizes and element type of its first result."""

    op: ir.Operation
    operands: Sequence[Tensor]
    dims: tuple[Term, ...]
    element: str
    scope: Scope

    def numbers(self, attribute: str, default: int | None = None) -> list[int]:
        """A list of integers among the attributes, or `default` everywhere."""
        if attribute not in self.op.attributes:
            return [] if default is None else [default] * len(self.operands[0].dims)
        return listed(self.op.attributes[attribute])

    def number(self, attribute: str, default: int = 1) -> int:
        """An integer among the attributes."""
        return ir.IntegerAttr(self.op.attributes[attribute]).value if attribute in self.op.attributes else default

    def read(self, operand: int, index: Index) -> Term:
        """An element of an operand."""
        return self.element_of(self.operands[operand], index)

    def element_of(self, value: Tensor, index: Index) -> Term:
        """An element, which is shown to lie inside."""
        index = tuple(map(z3.simplify, index))
        self.scope.show(f"{self.op.name} reads inside of its operand", inside(index, value.dims))
        return value.at(index)

    def entries(self, operand: int) -> list[Term]:
        """The elements of an operand of rank 1, as a shape or a start."""
        value = self.operands[operand]
        count = constant_of(value.dims[0])
        return [z3.simplify(value.at((number(i),))) for i in range(count or 0)]

    def same(self, what: str, a: Sequence[Term], b: Sequence[Term]) -> None:
        """Constrains sizes to be pairwise equal."""
        if len(a) != len(b):
            self.scope.require(what, z3.BoolVal(False))
            return
        for left, right in zip(a, b, strict=True):
            self.scope.require_same(f"{self.op.name}: {what}", left, right)

    def require(self, what: str, *conditions: Term) -> None:
        """Constrains sizes."""
        self.scope.require(f"{self.op.name}: {what}", z3.And(*conditions))

    def tensor(self, at: Callable[[Index], Term]) -> Tensor:
        """The result."""
        return Tensor(self.dims, self.element, at)


Rule = Callable[[Call], "Tensor | Sequence[Tensor]"]


def listed(attribute: ir.Attribute) -> list[int]:
    """The integers of an array or of dense elements."""
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return list(attribute)
    return [int(n) for n in np.array(ir.DenseElementsAttr(attribute)).reshape(-1)]


def numbers_in(text: str, name: str) -> list[int]:
    """The integers behind `name = ` in the text of an attribute, or those of a list."""
    found = re.search(rf"\b{name} = (\[[^\]]*\]|-?\d+)", text)
    return [int(n) for n in re.findall(r"-?\d+", found[1])] if found else []


def dims_of(type_: ir.Type, scope: Scope) -> tuple[Term, ...]:
    """The sizes of a type."""
    tensor = ir.RankedTensorType(type_)
    if tensor.encoding is None:
        return tuple(map(number, tensor.shape))
    return tuple(_size_in(a, scope) for a in ir.ArrayAttr(tensor.encoding))


def _size_in(attribute: ir.Attribute, scope: Scope) -> Term:
    if isinstance(attribute, ir.IntegerAttr):
        return number(attribute.value)
    return scope.size(Expr.parse(ir.FlatSymbolRefAttr(attribute).value))


def element_of(type_: ir.Type) -> str:
    """The element type."""
    return str(ir.RankedTensorType(type_).element_type)


# ---- programs ----------------------------------------------------------------------------------------------------


def argument(name: str, type_: ir.Type, scope: Scope) -> Tensor:
    """An argument: an uninterpreted function of the index."""
    dims, element = dims_of(type_, scope), element_of(type_)
    function = z3.Function(name, *[z3.IntSort()] * len(dims), sort_of(element, scope))

    def at(index: Index) -> Term:
        value = function(*index) if index else function()
        scope.assumptions.append(limits(value, element, scope))
        return value

    return Tensor(dims, element, at)


def results_of(module: ir.Module, scope: Scope, rules: Mapping[str, Rule]) -> list[Tensor]:
    """The results of a module's function `main`, whose arguments are called by their numbers."""
    main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
    block = main.regions[0].blocks[0]
    values = {a: argument(f"argument {i}", a.type, scope) for i, a in enumerate(block.arguments)}
    return evaluated(block, values, scope, rules)


def evaluated(block: ir.Block, values: dict[Any, Tensor], scope: Scope, rules: Mapping[str, Rule]) -> list[Tensor]:
    """The operands of a block's terminator, from values for its arguments."""
    *ops, last = block.operations
    for op in ops:
        evaluate(op.operation, values, scope, rules)
    return [values[v] for v in last.operands]


def evaluate(op: ir.Operation, values: dict[Any, Tensor], scope: Scope, rules: Mapping[str, Rule]) -> None:
    """Add the results of an op to the values."""
    operands = [values[v] for v in op.operands]
    name = op.name.removeprefix("stablehlo.")
    call = Call(op, operands, dims_of(op.results[0].type, scope), element_of(op.results[0].type), scope)
    found = rules.get(name, _elementwise)(call)
    results = [found] if isinstance(found, Tensor) else list(found)
    values.update((v, remembered(t)) for v, t in zip(op.results, results, strict=True))


def remembered(value: Tensor) -> Tensor:
    """The same elements, each term of which is a simple one."""
    return Tensor(value.dims, value.element, lambda index: z3.simplify(value.at(tuple(index))))


# ---- ops of one element --------------------------------------------------------------------------------------------


def _elementwise(call: Call) -> Tensor:
    name = call.op.name.removeprefix("stablehlo.")
    for operand in call.operands:
        if operand.dims:
            call.same("operands have the sizes of the result", operand.dims, call.dims)
    more = " ".join(f"{key}={call.op.attributes[key]}" for key in sorted(call.op.attributes))
    element = call.operands[-1].element

    def at(index: Index) -> Term:
        given = [call.element_of(v, index if v.dims else ()) for v in call.operands]
        return elementwise(name, given, element, call.element, more, call.scope)

    return call.tensor(at)


def convert(call: Call) -> Tensor:
    """`convert`."""
    call.same("sizes", call.operands[0].dims, call.dims)
    source = call.operands[0].element
    return call.tensor(lambda index: converted(call.read(0, index), source, call.element, call.scope))


def compare(call: Call) -> Tensor:
    """`compare`; in total order, which reals have anyway."""
    found = re.search(r"comparison_direction (\w+)", str(call.op.attributes["comparison_direction"]))
    direction, element = found[1] if found else "", call.operands[0].element
    for operand in call.operands:
        call.same("sizes", operand.dims, call.dims)
    return call.tensor(lambda i: compared(direction, call.read(0, i), call.read(1, i), element))


def constant(call: Call) -> Tensor:
    """`constant`."""
    attribute = ir.DenseElementsAttr(call.op.attributes["value"])
    if attribute.is_splat:
        value = literal(_python(attribute.get_splat_value()), call.element, call.scope)
        return call.tensor(lambda index: value)
    elements = {i: literal(n.item(), call.element, call.scope) for i, n in np.ndenumerate(np.array(attribute))}
    return call.tensor(lambda index: _looked_up(index, elements))


def _python(attribute: ir.Attribute) -> Any:
    for kind in (ir.FloatAttr, ir.BoolAttr, ir.IntegerAttr):
        if isinstance(attribute, kind):
            return attribute.value
    raise TypeError(f"no number: {attribute}")


def _looked_up(index: Index, elements: Mapping[tuple[int, ...], Term]) -> Term:
    found = None
    for place, value in elements.items():
        here = z3.And([i == n for i, n in zip(index, place, strict=True)])
        found = value if found is None else z3.If(here, value, found)
    return found


def shape(call: Call) -> Tensor:
    """`disc.shape`: sizes, as a vector or a scalar."""
    sizes = [_size_in(a, call.scope) for a in ir.ArrayAttr(call.op.attributes["dims"])]
    if not call.dims:
        return call.tensor(lambda index: sizes[0])
    return call.tensor(lambda index: _looked_up(index, {(i,): size for i, size in enumerate(sizes)}))


def get_dimension_size(call: Call) -> Tensor:
    """`get_dimension_size`."""
    size = call.operands[0].dims[call.number("dimension")]
    return call.tensor(lambda index: size)
