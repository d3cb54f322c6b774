# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized values become the integers that store them.

An op on quantized tensors computes with the floats they stand for and quantizes its result, as the specification says;
one that only moves elements moves the integers. Constants and conversions follow the specification's formulas:
`(integer - zero_point) * scale`, and `round(clamp(x / scale + zero_point))`, with a scale for each index of one axis in
a per-axis type.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from shlo_disc.shape_dialect import build
from shlo_disc.shape_dialect.build import broadcast, convert
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, storage_type, tensor_type
from shlo_disc.shape_dialect.mlir import ir, quant
from shlo_disc.shape_dialect.ops import INDEX_MAPS
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import entry_block

_MOVEMENTS = INDEX_MAPS.keys() | {"stablehlo.select"}


def _kind_of(kind: ir.Type) -> Hashable:
    """The properties of an element in a quantized type, apart from the axis that the parameters belong to."""
    if not isinstance(kind, quant.UniformQuantizedPerAxisType):
        return kind
    limits = (kind.storage_type_min, kind.storage_type_max)
    types = (kind.storage_type, kind.expressed_type, kind.is_signed)
    return (*types, *limits, tuple(kind.scales), tuple(kind.zero_points))


def remove_quantized_types(module: ir.Module) -> None:
    """Rewrite an annotated module in place. Arguments and results of a quantized type become integers."""
    rewriting = _Rewriting()
    for block in list(all_blocks(entry_block(module))):
        for argument in block.arguments:
            rewriting.note(argument, argument)
        for op in list(block.operations):
            if rewriting.concerns(op):
                with ir.InsertionPoint(op), op.location:
                    rewriting.visit(op)
    rewriting.finish()
    function = entry_block(module).owner
    terminator = list(entry_block(module).operations)[-1]
    inputs, results = [a.type for a in entry_block(module).arguments], [v.type for v in terminator.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def is_quantized(value: ir.Value) -> bool:
    """Tells whether a value is a tensor of a quantized type."""
    return isinstance(value.type, ir.RankedTensorType) and isinstance(element_type_of(value), quant.QuantizedType)


class _Rewriting:
    """The walk: the integers and the quantized type of each value that had one, and the ops that are replaced."""

    def __init__(self) -> None:
        self.integers: dict[ir.Value, ir.Value] = {}
        self.kinds: dict[ir.Value, Any] = {}
        self.dead: list[ir.Operation] = []

    def note(self, value: ir.Value, integers: ir.Value) -> None:
        """Remember the integers of a quantized value; an argument is retyped in place."""
        if not is_quantized(value):
            return
        self.kinds[value] = element_type_of(value)
        self.integers[value] = integers
        if value == integers:
            value.set_type(tensor_type(dims_of(value), storage_type(element_type_of(value))))

    def finish(self) -> None:
        for op in reversed(self.dead):
            op.erase()

    def concerns(self, op: ir.OpView) -> bool:
        """Tells whether an op reads or makes quantized values."""
        reads = bool(self.kinds) and any(v in self.kinds for v in op.operands)
        return reads or any(is_quantized(r) for r in op.results)

    def visit(self, op: ir.OpView) -> None:
        name = op.operation.name
        if name in ("func.return", "stablehlo.return", "stablehlo.get_dimension_size"):
            for position, value in enumerate(op.operands):
                op.operands[position] = self.integers.get(value, value)
            return
        self.dead.append(op.operation)
        if name == "stablehlo.bitcast_convert":
            self._bitcast(op)
        elif name == "stablehlo.constant":
            self._constant(op)
        elif name in _MOVEMENTS and self._is_one_kind(op):
            operands = [self.integers.get(v, v) for v in op.operands]
            self.note(op.results[0], _clone(op, operands, storage_type(element_type_of(op.results[0]))))
        else:
            self._compute(op)

    def _is_one_kind(self, op: ir.OpView) -> bool:
        """Tells whether integers stay what they are: the parameters do, along whichever axis they are given.

        StableHLO's verifier has that axis where the movement brings it.
        """
        kinds = {_kind_of(self.kinds[v]) for v in op.operands if v in self.kinds}
        return kinds == {_kind_of(element_type_of(op.results[0]))}

    def _bitcast(self, op: ir.OpView) -> None:
        value, result = self.integers.get(op.operands[0], op.operands[0]), op.results[0]
        target = tensor_type(dims_of(result), storage_type(element_type_of(result)))
        bits = value if value.type == target else build.create("bitcast_convert", [value], target)
        if is_quantized(result):
            self.note(result, bits)
        else:
            result.replace_all_uses_with(bits)

    def _constant(self, op: ir.OpView) -> None:
        value = ir.DenseElementsAttr(op.attributes["value"])
        integers = build.create("constant", [], value.type, {"value": value})
        self.note(op.results[0], convert(integers, storage_type(element_type_of(op.results[0])), "bitcast_convert"))

    def _compute(self, op: ir.OpView) -> None:
        """On floats. Quantizing and dequantizing are nothing but what happens to results and operands."""
        operands = [dequantized(self.integers[v], self.kinds[v]) if v in self.kinds else v for v in op.operands]
        result = op.results[0]
        kind: Any = element_type_of(result)
        expressed = kind.expressed_type if is_quantized(result) else kind
        if op.operation.name in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
            value = convert(operands[0], expressed)
        else:
            value = _clone(op, operands, expressed)
        if is_quantized(result):
            self.note(result, quantized(value, kind))
        else:
            result.replace_all_uses_with(value)


def _clone(op: ir.OpView, operands: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    attributes = {name: op.attributes[name] for name in op.attributes}
    result = tensor_type(dims_of(op.results[0]), element)
    return ir.Operation.create(op.operation.name, [result], list(operands), attributes).results[0]


# ---- the formulas ----------------------------------------------------------------------------------------------------


def dequantized(integers: ir.Value, kind: Any) -> ir.Value:
    """The floats that integers of a quantized type stand for."""
    scale, zero_point = _parameters(kind, dims_of(integers), ir.IntegerType.get_signless(32))
    wide = convert(integers, ir.IntegerType.get_signless(32))
    return build.multiply(convert(build.subtract(wide, zero_point), kind.expressed_type), scale)


def quantized(floats: ir.Value, kind: Any) -> ir.Value:
    """The integers of a quantized type that are nearest to floats."""
    expressed = kind.expressed_type
    scale, zero_point = _parameters(kind, dims_of(floats), expressed)
    shifted = build.add(build.divide(floats, scale), zero_point)
    low, high = (build.constant(bound, expressed) for bound in (kind.storage_type_min, kind.storage_type_max))
    clamped = build.create("clamp", [low, shifted, high], floats.type)
    return convert(build.round_nearest_even(clamped), storage_type(kind))


def _parameters(kind: Any, dims: Dims, integer: ir.Type) -> tuple[ir.Value, ir.Value]:
    """The scale, as floats, and the zero point, as `integer`, for every element of a tensor of sizes `dims`."""
    if isinstance(kind, quant.UniformQuantizedPerAxisType):
        axis = kind.quantized_dimension
        scales = _along(list(kind.scales), kind.expressed_type, dims, axis)
        return scales, _along(list(kind.zero_points), integer, dims, axis)
    return build.constant(kind.scale, kind.expressed_type, dims), build.constant(kind.zero_point, integer, dims)


def _along(numbers: Sequence[float], element: ir.Type, dims: Dims, axis: int) -> ir.Value:
    """Numbers along one axis, the same everywhere else."""
    is_float = isinstance(element, ir.FloatType)
    attributes = [
        ir.FloatAttr.get(element, number) if is_float else ir.IntegerAttr.get(element, int(number))
        for number in numbers
    ]
    row = tensor_type([Expr.const(len(numbers))], element)
    value = ir.DenseElementsAttr.get(attributes, row)
    return broadcast(build.create("constant", [], row, {"value": value}), dims, [axis])
