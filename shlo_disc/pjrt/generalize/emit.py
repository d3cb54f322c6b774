# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The symbolic program: one of the samples, with `?` for its sizes and with the dynamic twins of ops that state them.

Sizes and hidden arguments are custom calls at first, which functions can be inlined with; `finish` replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shlo_disc.mlir import ir
from shlo_disc.registry.custom_calls import find_custom_call
from shlo_disc.shape_dialect.dialect.ops import ShapeOp, integer_attr
from shlo_disc.shape_dialect.dialect.types import DYNAMIC, Dims, dims_attr, dims_of_attr
from shlo_disc.shape_dialect.inference.size_relations import rank, splat_text
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.locations import source_line
from shlo_disc.shape_dialect.utils.regions import all_blocks
from shlo_disc.transforms.expand.random import DYNAMIC as DYNAMIC_RNG_BIT_GENERATOR
from shlo_disc.transforms.expand.windows import copy_body

from .expressions import Expressions
from .relations import terminator
from .samples import NotGeneralError, nested_operations

_SIZES, _HIDDEN = "shlo_disc.sizes", "shlo_disc.hidden"
_SHAPE_OPERANDS = "indices_of_shape_operands"


class Emission:
    """Rewrites the samples' module in place."""

    def __init__(self, expressions: Expressions):
        self.expressions = expressions
        self.samples = expressions.samples
        self._origins: dict[ir.Value, ir.Value] = {}  # of the results of plain operations
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
            count = 1 + sum(1 for _ in nested_operations(op))
            if self._rewrite(op, position):
                inside = position + count
        for position in sorted(self.samples.plain, reverse=True):
            self.samples.operations[position].operation.erase()
        for function in functions:
            _set_function_type(function)

    def _rewrite(self, op: ir.OpView, position: int) -> bool:
        """Replace an op where that is needed."""
        name = op.operation.name
        if position in self._hidden:
            self._replace(op, [self._hidden_constant(op, position)])
            return True
        if not self._states_sizes(position, op):
            return False
        if name not in _TWINS:
            raise NotGeneralError(f"{name} states sizes that change", source_line(op.location))
        with ir.InsertionPoint(op), op.location:
            twin = _TWINS[name](self, op, position)
        self._replace(op, twin if isinstance(twin, list) else [twin])
        return True

    def dims(self, value: ir.Value) -> Dims:
        """The sizes of a value of the samples."""
        return self.expressions.dims(value)

    def attribute(self, position: int, name: str) -> Dims:
        """The numbers of an attribute."""
        return self.expressions.attribute(position, name)

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
        if name == "func.func":
            return False
        names = self.samples.attribute_names.get(position, [])
        numbers = [n for name in names for n in self.samples.attributes[position, name]]
        numbers += self.samples.elements.get(position, [])
        if name in _STATED_BY_TYPE or _is_call_without_sizes(op):
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
            return self.spread(argument, op) if is_splat else argument

    def spread(self, scalar: ir.Value, op: ir.OpView) -> ir.Value:
        """A scalar as the shape of an op's result."""
        result = op.results[0]
        if not self.samples.dims.get(result):
            return scalar
        none = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
        return create("dynamic_broadcast_in_dim", result.type, [scalar, self.sizes(self.dims(result))], none)

    def _replace(self, op: ir.OpView, twins: Sequence[ir.Value]) -> None:
        for result, twin in zip(op.results, twins, strict=True):
            self.samples.dims[twin] = self.samples.dims.get(result, [])
            result.replace_all_uses_with(twin)
        op.operation.erase()


def _tensor(dims: Sequence[Expr], element_type: ir.Type) -> ir.Type:
    return ir.RankedTensorType.get([DYNAMIC if d.constant is None else d.constant for d in dims], element_type)


def create(name: str, type_: ir.Type, operands: Sequence[ir.Value], attributes: dict[str, Any] | None = None) -> Any:
    """The result of a StableHLO op."""
    return ir.Operation.create(f"stablehlo.{name}", [type_], operands, attributes or {}).result


def _placeholder(target: str, type_: ir.Type, attributes: dict[str, ir.Attribute]) -> Any:
    return create("custom_call", type_, [], {"call_target_name": ir.StringAttr.get(target), **attributes})


def _set_function_type(function: ir.OpView) -> None:
    block = function.regions[0].blocks[0]
    kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in terminator(block).operands])
    function.attributes["function_type"] = ir.TypeAttr.get(kind)


def _constant(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    tensor = ir.RankedTensorType(op.results[0].type)
    kind = ir.RankedTensorType.get([], tensor.element_type)
    if position not in e.samples.splats:
        raise NotGeneralError("the shape of a constant changes, and its elements do not", source_line(op.location))
    value = e.expressions.of(e.samples.elements[position][0])
    if value.constant is None:
        return e.spread(e.sizes([value], kind), op)
    scalar = ir.Operation.parse(f"stablehlo.constant dense<{splat_text(op)}> : {kind}")
    ir.InsertionPoint(op).insert(scalar)
    return e.spread(scalar.result, op)


def _iota(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    result = op.results[0]
    kept = {"iota_dimension": op.attributes["iota_dimension"]}
    return create("dynamic_iota", result.type, [e.sizes(e.dims(result))], kept)


def _broadcast(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    result = op.results[0]
    kept = {"broadcast_dimensions": op.attributes["broadcast_dimensions"]}
    return create("dynamic_broadcast_in_dim", result.type, [op.operands[0], e.sizes(e.dims(result))], kept)


def _reshape(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    result = op.results[0]
    return create("dynamic_reshape", result.type, [op.operands[0], e.sizes(e.dims(result))])


def _slice(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    bounds = [e.sizes(e.attribute(position, name)) for name in ("start_indices", "limit_indices", "strides")]
    return create("real_dynamic_slice", op.results[0].type, [op.operands[0], *bounds])


def _pad(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = [e.sizes(e.attribute(position, name)) for name in names]
    return create("dynamic_pad", op.results[0].type, [*op.operands, *amounts])


def _dynamic_slice(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    """The start is clamped such that the slice fits, as `dynamic_slice` does."""
    operand, starts = op.operands[0], list(op.operands)[1:]
    sizes = e.attribute(position, "slice_sizes")
    kind = ir.RankedTensorType(starts[0].type)
    one = ir.RankedTensorType.get([1], kind.element_type)
    vector = ir.RankedTensorType.get([len(starts)], kind.element_type)
    parts = [create("reshape", one, [start]) for start in starts]
    start = parts[0] if len(parts) == 1 else create("concatenate", vector, parts, {"dimension": integer_attr(0)})
    extents = e.sizes(sizes, vector)
    last = e.sizes([whole - size for whole, size in zip(e.dims(operand), sizes, strict=True)], vector)
    zero = e.sizes([Expr.const(0)] * len(starts), vector)
    start = create("clamp", vector, [zero, start, last])
    limit = create("add", vector, [start, extents])
    strides = e.sizes([Expr.const(1)] * len(starts), vector)
    return create("real_dynamic_slice", op.results[0].type, [operand, start, limit, strides])


def _gather(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    names = ("dimension_numbers", "indices_are_sorted")
    kept = {name: op.attributes[name] for name in names if name in op.attributes}
    operands = [*op.operands, e.sizes(e.attribute(position, "slice_sizes"))]
    return create("dynamic_gather", op.results[0].type, operands, kept)


def _reduce_window(e: Emission, op: ir.OpView, position: int) -> ir.Value:
    """A custom call, whose computation is a function: StableHLO has no op with windows that are operands."""
    if len(op.results) != 1:
        raise NotGeneralError("windows of several operands change", source_line(op.location))
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    parameters = [e.sizes(e.attribute(position, name)) for name in names]
    padding = e.sizes(e.attribute(position, "padding"))
    pairs = ir.RankedTensorType.get([rank(op.operands[0]), 2], ir.IntegerType.get_signless(64))
    name = f"shlo_disc.window{position}"
    _make_function(e.samples.module, name, op.regions[0].blocks[0])
    attributes = {
        "call_target_name": ir.StringAttr.get("stablehlo.dynamic_reduce_window"),
        "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(name)]),
    }
    operands = [*op.operands, *parameters, create("reshape", pairs, [padding])]
    return create("custom_call", op.results[0].type, operands, attributes)


def _rng_bit_generator(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """The custom call that jax.export has for it."""
    attributes = {
        "call_target_name": ir.StringAttr.get(DYNAMIC_RNG_BIT_GENERATOR),
        "rng_algorithm": op.attributes["rng_algorithm"],
    }
    operands = [op.operands[0], e.sizes(e.dims(op.results[1]))]
    return list(
        ir.Operation.create("stablehlo.custom_call", [r.type for r in op.results], operands, attributes).results
    )


def _custom_call(e: Emission, op: ir.OpView, position: int) -> list[ir.Value]:
    """The call of a registered function, with operands that are the sizes of its results, as jax.export has them."""
    first, count = len(op.operands), len(op.results)
    indices: Any = np.arange(first, first + count)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes[_SHAPE_OPERANDS] = ir.DenseIntElementsAttr.get(indices)
    operands = [*op.operands, *(e.sizes(e.dims(result)) for result in op.results)]
    types = [result.type for result in op.results]
    return list(ir.Operation.create("stablehlo.custom_call", types, operands, attributes).results)


def _make_function(module: ir.Module, name: str, body: ir.Block) -> None:
    """A private function with the body of an op."""
    kind = ir.FunctionType.get([a.type for a in body.arguments], [v.type for v in terminator(body).operands])
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(kind),
    }
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    copy_body(body, function.regions[0], "func.return")


_TWINS: dict[str, Callable[[Emission, ir.OpView, int], ir.Value | list[ir.Value]]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.constant": _constant,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": _reshape,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
    "stablehlo.slice": _slice,
}
"""What replaces an op that states a size which is no number any more."""

_STATED_BY_TYPE = tuple(
    "stablehlo." + name for name in ("broadcast_in_dim", "constant", "iota", "reshape", "rng_bit_generator")
)


def finish(function: ir.OpView) -> list[Dims]:
    """Replace what stands for sizes and for hidden arguments, once all is in one function.

    The sizes of the hidden arguments, which are the last ones.
    """
    block = function.regions[0].blocks[0]
    calls = [op for inner in list(all_blocks(block)) for op in inner.operations if _target(op) in (_SIZES, _HIDDEN)]
    hidden: dict[int, tuple[ir.Type, Dims]] = {}
    for op in calls:
        if _target(op) == _HIDDEN:
            hidden[op.attributes["number"].value] = op.results[0].type, dims_of_attr(op.attributes["sizes"])
    if "arg_attrs" in function.attributes:
        known = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*known, *[ir.DictAttr.get({})] * len(hidden)])
    with function.location:
        arguments = {number: block.add_argument(hidden[number][0], function.location) for number in sorted(hidden)}
    for op in calls:
        if _target(op) == _HIDDEN:
            twin: ir.Value = arguments[op.attributes["number"].value]
        else:
            with ir.InsertionPoint(op), op.location:
                twin = ShapeOp(op.attributes["sizes"], result=op.results[0].type).results[0]
        op.results[0].replace_all_uses_with(twin)
        op.operation.erase()
    _set_function_type(function)
    return [hidden[number][1] for number in sorted(hidden)]


def _is_call_without_sizes(op: ir.OpView) -> bool:
    """Whether an op calls a registered function, and does not say the sizes of its results by operands."""
    return find_custom_call(_target(op)) is not None and _SHAPE_OPERANDS not in op.attributes


def _target(op: ir.OpView) -> str:
    is_call = op.operation.name == "stablehlo.custom_call"
    return str(ir.StringAttr(op.attributes["call_target_name"]).value) if is_call else ""


__all__ = ["Emission", "finish"]
