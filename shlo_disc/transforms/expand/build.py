# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO ops on annotated types, built at the insertion point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.dialect.ops import ShapeOp, integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims, dims_attr, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.data_movement import padded_size
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv
from shlo_disc.transforms.views import broadcast, shape_tensor, view

ONE = Expr.const(1)


def create(
    name: str, operands: Sequence[ir.Value], type_: ir.Type, attributes: Mapping[str, ir.Attribute] | None = None
) -> ir.Value:
    """The result of `stablehlo.<name>`."""
    op = ir.Operation.create(
        f"stablehlo.{name}", results=[type_], operands=list(operands), attributes=dict(attributes or {})
    )
    return op.results[0]


def elementwise(name: str, *operands: ir.Value) -> ir.Value:
    """An elementwise op whose result has the type of its operands."""
    return create(name, operands, operands[0].type)


def convert(value: ir.Value, element: ir.Type, name: str = "convert") -> ir.Value:
    """`value` with elements of another type; `name` may be "bitcast_convert"."""
    if element_type_of(value) == element:
        return value
    return create(name, [value], tensor_type(dims_of(value), element))


def compare(direction: str, a: ir.Value, b: ir.Value, total_order: bool = False) -> ir.Value:
    """`a direction b`, elementwise; floats in total order if asked for."""
    attributes = {"comparison_direction": ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")}
    if total_order:
        attributes["compare_type"] = ir.Attribute.parse("#stablehlo<comparison_type TOTALORDER>")
    boolean = tensor_type(dims_of(a), ir.IntegerType.get_signless(1))
    return create("compare", [a, b], boolean, attributes)


def select(condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
    """`condition ? yes : no`, elementwise."""
    return create("select", [condition, yes, no], yes.type)


def constant(number: int | float | complex, element: ir.Type, dims: Dims = ()) -> ir.Value:
    """One number, everywhere."""
    scalar = ir.RankedTensorType.get([], element)
    if isinstance(element, ir.ComplexType):
        array: Any = np.array(number, np.complex64 if str(element) == "complex<f32>" else np.complex128)
        value = ir.DenseElementsAttr.get(array, type=scalar)
    elif isinstance(number, complex):
        raise TypeError(f"{number} is no {element}")
    elif isinstance(element, ir.FloatType):
        value = ir.DenseElementsAttr.get_splat(scalar, ir.FloatAttr.get(element, float(number)))
    else:
        value = ir.DenseElementsAttr.get_splat(scalar, ir.IntegerAttr.get(element, int(number)))
    return broadcast_scalar(create("constant", [], scalar, {"value": value}), dims)


def size(value: Expr, element: ir.Type, dims: Dims = ()) -> ir.Value:
    """A size as an integer, everywhere."""
    if value.constant is not None:
        return constant(value.constant, element, dims)
    scalar = ShapeOp(dims_attr([value]), result=ir.RankedTensorType.get([], element)).results[0]
    return broadcast_scalar(scalar, dims)


def broadcast_scalar(scalar: ir.Value, dims: Dims) -> ir.Value:
    """A scalar at every place of `dims`."""
    return broadcast(scalar, dims, []) if dims else scalar


def iota(dims: Dims, element: ir.Type, axis: int) -> ir.Value:
    """The index along `axis`."""
    result = tensor_type(dims, element)
    static = result.has_static_shape
    operands = [] if static else [shape_tensor(dims)]
    return create("iota" if static else "dynamic_iota", operands, result, {"iota_dimension": integer_attr(axis)})


def window(value: ir.Value, starts: Dims, sizes: Dims) -> ir.Value:
    """The part of `value` from `starts` on."""
    kind = element_type_of(value)
    limits = tuple(start + length for start, length in zip(starts, sizes, strict=True))
    strides = (ONE,) * len(starts)
    bounds = [[d.constant for d in dims] for dims in (starts, limits, strides)]
    result = tensor_type(sizes, kind)
    if ir.RankedTensorType(value.type).has_static_shape and not any(None in b for b in bounds):
        names = ("start_indices", "limit_indices", "strides")
        numbers = [[n or 0 for n in bound] for bound in bounds]
        attributes = {name: ir.DenseI64ArrayAttr.get(n) for name, n in zip(names, numbers, strict=True)}
        return create("slice", [value], result, attributes)
    operands = [value, *(shape_tensor(dims) for dims in (starts, limits, strides))]
    return create("real_dynamic_slice", operands, result)


def leading(value: ir.Value, sizes: Dims) -> ir.Value:
    """The first elements along every axis."""
    return value if dims_of(value) == sizes else window(value, (Expr.const(0),) * len(sizes), sizes)


def column(value: ir.Value, position: int) -> ir.Value:
    """The elements at one place of the last axis."""
    *outer, _ = dims_of(value)
    starts = (*(Expr.const(0) for _ in outer), Expr.const(position))
    return view(window(value, starts, (*outer, ONE)), outer)


def stack(scalars: Sequence[ir.Value]) -> ir.Value:
    """Scalars as a vector."""
    kind = element_type_of(scalars[0])
    parts = [create("reshape", [s], ir.RankedTensorType.get([1], kind)) for s in scalars]
    return create("concatenate", parts, ir.RankedTensorType.get([len(parts)], kind), {"dimension": integer_attr(0)})


def reverse(value: ir.Value, axes: Sequence[int]) -> ir.Value:
    """`value` back to front along `axes`."""
    return create("reverse", [value], value.type, {"dimensions": ir.DenseI64ArrayAttr.get(list(axes))})


def pad(
    value: ir.Value, low: Sequence[Expr], high: Sequence[Expr], interior: Sequence[int], filler: float = 0
) -> ir.Value:
    """`value` with zeros, or another number, around it and between its elements."""
    holes = [Expr.const(n) for n in interior]
    columns = zip(dims_of(value), low, high, holes, strict=True)
    result = tensor_type([padded_size(*column) for column in columns], element_type_of(value))
    operands = [value, constant(filler, element_type_of(value))]
    known = [[e.constant for e in amounts] for amounts in (low, high)]
    if any(c is None for column in known for c in column):
        return create("dynamic_pad", [*operands, *(shape_tensor(amounts) for amounts in (low, high, holes))], result)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    amounts = [[c for c in column if c is not None] for column in known] + [list(interior)]
    attributes = {name: ir.DenseI64ArrayAttr.get(column) for name, column in zip(names, amounts, strict=True)}
    return create("pad", operands, result, attributes)


def every(value: ir.Value, strides: Sequence[int]) -> ir.Value:
    """Every `strides`-th element of `value` along each axis, from the first."""
    dims = dims_of(value)
    sizes = [ceildiv(d, s) for d, s in zip(dims, strides, strict=True)]
    result = tensor_type(sizes, element_type_of(value))
    parts = [[Expr.const(0)] * len(dims), list(dims), [Expr.const(s) for s in strides]]
    return create("real_dynamic_slice", [value, *(shape_tensor(part) for part in parts)], result)
