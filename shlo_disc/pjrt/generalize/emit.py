# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbolic program: one of the samples, with `?` for its sizes and with the dynamic forms of ops that state them.

Sizes and hidden arguments are custom calls at first, which functions can be inlined with; `finish` replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shlo_disc.importer.entry_arguments import add_arguments, set_function_type
from shlo_disc.shape_dialect.custom_calls import find_custom_call
from shlo_disc.shape_dialect.dialect.ops import ShapeOp, integer_attr
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims, dims_attr, dims_of_attr
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import TABLE
from shlo_disc.shape_dialect.ops.dynamic_forms import DynamicForm, NoDynamicFormError, create, spread
from shlo_disc.shape_dialect.ops.lapack_sizes import SHAPE_OPERANDS
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.called_operations import CALLS
from shlo_disc.shape_dialect.utils.locations import source_line

from .expressions import Expressions
from .samples import NotGeneralError

_SIZES, _HIDDEN = "shlo_disc.sizes", "shlo_disc.hidden"


class Emission:
    """Rewrites the samples' module in place. It is the `StatedSizes` of the dynamic forms."""

    def __init__(self, expressions: Expressions):
        self.expressions = expressions
        self.samples = expressions.samples
        self._origins: dict[ir.Value, ir.Value] = {}  # of the results of plain operations
        self._position = 0  # of the operation that is being replaced
        self._hidden = {position: i for i, position in enumerate(expressions.hidden)}

    def run(self) -> None:
        """Give every value its sizes, replace the ops that state them, and say what the functions take and return."""
        functions = [op for op in self.samples.operations if op.operation.name == "func.func"]
        for value in self.samples.dims:
            self._set_type(value)
        inside = 0  # the next operation that is not inside of one that was replaced
        for position, op in enumerate(self.samples.operations):
            if position < inside:
                continue
            if position in self.samples.plain:
                self._origins[op.results[0]] = self._origins.get(op.operands[0], op.operands[0])
                continue
            self._use_operands(op, position)
            calls = any(name in op.attributes for name in CALLS)  # what replaces it calls the function, too
            if self._rewrite(op, position) and not calls:
                inside = position + self.samples.extents[position]
        for position in sorted(self.samples.plain, reverse=True):
            self.samples.operations[position].operation.erase()
        for function in functions:
            set_function_type(function)

    def _rewrite(self, op: ir.OpView, position: int) -> bool:
        """Replace an op where that is needed."""
        if position in self._hidden:
            self._replace(op, [self._hidden_constant(op, position)])
            return True
        if not self._states_sizes(position, op):
            return False
        form = self._build(op, position)
        self._replace(op, form if isinstance(form, list) else [form])
        return True

    def _build(self, op: ir.OpView, position: int) -> ir.Value | list[ir.Value]:
        """The dynamic form of an op."""
        self._position = position  # the op itself is no key any more: its hash is of its types, too
        name = op.operation.name
        form = _form_of(name)
        if form is None:
            raise NotGeneralError(f"{name} states sizes that change", source_line(op.location))
        try:
            with ir.InsertionPoint(op), op.location:
                return form.build(self, op)
        except NoDynamicFormError as error:
            raise NotGeneralError(str(error), source_line(op.location)) from None

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of a value of the samples."""
        return self.expressions.dims(value)

    def numbers(self, op: ir.OpView, name: str) -> Dims:
        """The numbers of an attribute of the op that is being replaced."""
        return self.expressions.attribute(self._position, name)

    def element(self, constant: ir.OpView) -> Expr | None:
        """The size that each element of the constant that is being replaced is; None where all are a number."""
        if self._position not in self.samples.splats:
            raise NoDynamicFormError("the shape of a constant changes, and its elements do not")
        value = self.expressions.of(self.samples.elements[self._position][0])
        return value if value.constant is None else None

    def sizes(self, dims: Sequence[Expr], type_: ir.Type | None = None) -> ir.Value:
        """A tensor of these sizes, by default of rank 1 and of i64."""
        kind = type_ or ir.RankedTensorType.get([len(dims)], ir.IntegerType.get_signless(64))
        return _placeholder(_SIZES, kind, {"sizes": dims_attr(dims)})

    def _set_type(self, value: ir.Value) -> None:
        value.set_type(_tensor(self.dims(value), ir.RankedTensorType(value.type).element_type))

    def _use_operands(self, op: ir.OpView, position: int) -> None:
        """The prefixes and broadcasts of values that an op uses, whether this sample has ops for them or not."""
        for index, value in enumerate(op.operands):
            if used := self.samples.operands.get((position, index)):
                with ir.InsertionPoint(op), op.location:
                    op.operands[index] = self._used_as(self._origins.get(value, value), used)

    def _used_as(self, value: ir.Value, used: list[int]) -> ir.Value:
        pairs = zip(self.samples.dims[value], used, strict=True)
        kept = [a if self.expressions.is_broadcast(a, b) else b for a, b in pairs]
        dims = tuple(self.expressions.of(n) for n in kept)
        if dims != self.dims(value):
            bounds = [[Expr.const(0)] * len(dims), dims, [Expr.const(1)] * len(dims)]
            operands = [value, *(self.sizes(bound) for bound in bounds)]
            value = self._made("real_dynamic_slice", operands, kept)
        dims = tuple(self.expressions.of(n) for n in used)
        if dims != self.dims(value):
            axes = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get(list(range(len(dims))))}
            value = self._made("dynamic_broadcast_in_dim", [value, self.sizes(dims)], used, axes)
        return value

    def _made(self, name: str, operands: list[ir.Value], numbers: list[int], attributes: Any = None) -> ir.Value:
        """A value with the sizes, which are numbers of the samples, and the element type of the first operand."""
        element_type = ir.RankedTensorType(operands[0].type).element_type
        kind = _tensor(tuple(self.expressions.of(n) for n in numbers), element_type)
        made: ir.Value = create(name, kind, operands, attributes)
        self.samples.dims[made] = numbers
        return made

    def _states_sizes(self, position: int, op: ir.OpView) -> bool:
        name = op.operation.name
        names = self.samples.attribute_names.get(position, [])
        numbers = [n for name in names for n in self.samples.attributes[position, name]]
        numbers += self.samples.elements.get(position, [])
        form = _form_of(name)
        if (form is not None and form.of_type) or _is_call_without_sizes(op):
            numbers += [n for result in op.results for n in self.samples.dims.get(result, [])]
        return any(self.expressions.of(n).constant is None for n in numbers)

    def _hidden_constant(self, op: ir.OpView, position: int) -> ir.Value:
        """The argument; one element of a splat is spread to all."""
        tensor = ir.RankedTensorType(op.results[0].type)
        is_splat = position in self.samples.splats
        kind = ir.RankedTensorType.get([], tensor.element_type) if is_splat else tensor
        with ir.InsertionPoint(op), op.location:
            dims = () if is_splat else self.dims(op.results[0])
            attributes = {"number": integer_attr(self._hidden[position]), "sizes": dims_attr(dims)}
            argument = _placeholder(_HIDDEN, kind, attributes)
            return spread(self, argument, op) if is_splat else argument

    def _replace(self, op: ir.OpView, forms: Sequence[ir.Value]) -> None:
        for result, form in zip(op.results, forms, strict=True):
            self.samples.dims[form] = self.samples.dims.get(result, [])
            result.replace_all_uses_with(form)
        op.operation.erase()


def _form_of(name: str) -> DynamicForm | None:
    return TABLE[name].dynamic_form if name in TABLE else None


def _is_call_without_sizes(op: ir.OpView) -> bool:
    """Tells whether an op calls a registered function, and does not say the sizes of its results by operands."""
    return find_custom_call(_target_of(op)) is not None and SHAPE_OPERANDS not in op.attributes


def _target_of(op: ir.OpView) -> str:
    """The function that a custom call calls; "" of any other op."""
    is_call = op.operation.name == "stablehlo.custom_call"
    return str(ir.StringAttr(op.attributes["call_target_name"]).value) if is_call else ""


def _tensor(dims: Sequence[Expr], element_type: ir.Type) -> ir.Type:
    """A tensor type with `?` for what is no number."""
    return ir.RankedTensorType.get([DYNAMIC if d.constant is None else d.constant for d in dims], element_type)


def _placeholder(target: str, type_: ir.Type, attributes: dict[str, ir.Attribute]) -> Any:
    return create("custom_call", type_, [], {"call_target_name": ir.StringAttr.get(target), **attributes})


def _shape(dims: ir.Attribute, type_: ir.Type) -> Any:
    """A `disc.shape`. Its own class takes an attribute without elements for none."""
    return ir.Operation.create(ShapeOp.OPERATION_NAME, [type_], attributes={"dims": dims}).result


def finish(function: ir.OpView, given: Dims) -> list[Dims]:
    """Replace what stands for sizes and for hidden arguments, once all is in one function.

    given: symbols that are sizes of no argument. The sizes of the arguments that were added, which are the last ones:
    the hidden ones, and an array without elements that has the symbols as sizes.
    """
    block = function.regions[0].blocks[0]
    calls = [op for inner in list(all_blocks(block)) for op in inner.operations if _target_of(op) in (_SIZES, _HIDDEN)]
    hidden: dict[int, tuple[ir.Type, Dims]] = {}
    for op in calls:
        if _target_of(op) == _HIDDEN:
            hidden[op.attributes["number"].value] = op.results[0].type, dims_of_attr(op.attributes["sizes"])
    sizes = [(*given, Expr.const(0))] if given else []
    with function.location:
        more = [hidden[number][0] for number in sorted(hidden)]
        added = add_arguments(function, [*more, *(_tensor(dims, ir.IntegerType.get_signless(8)) for dims in sizes)])
    arguments = dict(zip(sorted(hidden), added, strict=False))
    for op in calls:
        if _target_of(op) == _HIDDEN:
            form: ir.Value = arguments[op.attributes["number"].value]
        else:
            with ir.InsertionPoint(op), op.location:
                form = _shape(op.attributes["sizes"], op.results[0].type)
        op.results[0].replace_all_uses_with(form)
        op.operation.erase()
    return [*(hidden[number][1] for number in sorted(hidden)), *sizes]


__all__ = ["Emission", "finish"]
