# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO ops on annotated types, built at the insertion point.

The one place that names ops to build them: a function for each, which computes the type of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shlo_disc.shape_dialect.dialect.ops import ShapeOp, integer_attr
from shlo_disc.shape_dialect.dialect.types import Dims, dims_attr, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import ir, load_chlo
from shlo_disc.shape_dialect.ops import RESHAPES
from shlo_disc.shape_dialect.ops.data_movement import padded_size
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv

ONE = Expr.const(1)


def create(
    name: str, operands: Sequence[ir.Value], type_: ir.Type, attributes: Mapping[str, ir.Attribute] | None = None
) -> ir.Value:
    """The result of `stablehlo.<name>`."""
    op = ir.Operation.create(
        f"stablehlo.{name}", results=[type_], operands=list(operands), attributes=dict(attributes or {})
    )
    return op.results[0]


# ---- elementwise ops -------------------------------------------------------------------------------------------------


def elementwise(name: str, *operands: ir.Value) -> ir.Value:
    """An elementwise op whose result has the type of its operands."""
    return create(name, operands, operands[0].type)


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a + b`."""
    return elementwise("add", a, b)


def subtract(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a - b`."""
    return elementwise("subtract", a, b)


def multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a * b`."""
    return elementwise("multiply", a, b)


def divide(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a / b`; integers are rounded toward 0."""
    return elementwise("divide", a, b)


def remainder(a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder of `a / b`, with the sign of `a`."""
    return elementwise("remainder", a, b)


def power(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a` to the power `b`."""
    return elementwise("power", a, b)


def maximum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of `a` and `b`, NaN if either is."""
    return elementwise("maximum", a, b)


def minimum(a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of `a` and `b`, NaN if either is."""
    return elementwise("minimum", a, b)


def atan2(a: ir.Value, b: ir.Value) -> ir.Value:
    """The angle of the point (b, a)."""
    return elementwise("atan2", a, b)


def and_(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a & b`, of booleans or bits."""
    return elementwise("and", a, b)


def or_(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a | b`, of booleans or bits."""
    return elementwise("or", a, b)


def xor(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a ^ b`, of booleans or bits."""
    return elementwise("xor", a, b)


def shift_left(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a << b`."""
    return elementwise("shift_left", a, b)


def shift_right_logical(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a >> b`, filled up with zeros."""
    return elementwise("shift_right_logical", a, b)


def shift_right_arithmetic(a: ir.Value, b: ir.Value) -> ir.Value:
    """`a >> b`, filled up with the sign."""
    return elementwise("shift_right_arithmetic", a, b)


def not_(value: ir.Value) -> ir.Value:
    """`~value`, of booleans or bits."""
    return elementwise("not", value)


def abs(value: ir.Value) -> ir.Value:
    """The magnitude."""
    return elementwise("abs", value)


def negate(value: ir.Value) -> ir.Value:
    """`-value`."""
    return elementwise("negate", value)


def sign(value: ir.Value) -> ir.Value:
    """-1, 0 or 1."""
    return elementwise("sign", value)


def floor(value: ir.Value) -> ir.Value:
    """The integer below."""
    return elementwise("floor", value)


def ceil(value: ir.Value) -> ir.Value:
    """The integer above."""
    return elementwise("ceil", value)


def round_nearest_even(value: ir.Value) -> ir.Value:
    """The nearest integer, the even one of two."""
    return elementwise("round_nearest_even", value)


def sqrt(value: ir.Value) -> ir.Value:
    """The square root."""
    return elementwise("sqrt", value)


def rsqrt(value: ir.Value) -> ir.Value:
    """The reciprocal of the square root."""
    return elementwise("rsqrt", value)


def exponential(value: ir.Value) -> ir.Value:
    """e to the power `value`."""
    return elementwise("exponential", value)


def exponential_minus_one(value: ir.Value) -> ir.Value:
    """e to the power `value`, minus 1."""
    return elementwise("exponential_minus_one", value)


def log(value: ir.Value) -> ir.Value:
    """The natural logarithm."""
    return elementwise("log", value)


def log_plus_one(value: ir.Value) -> ir.Value:
    """The natural logarithm of 1 + `value`."""
    return elementwise("log_plus_one", value)


def tanh(value: ir.Value) -> ir.Value:
    """The hyperbolic tangent."""
    return elementwise("tanh", value)


def sine(value: ir.Value) -> ir.Value:
    """The sine, of radians."""
    return elementwise("sine", value)


def cosine(value: ir.Value) -> ir.Value:
    """The cosine, of radians."""
    return elementwise("cosine", value)


def erf(value: ir.Value) -> ir.Value:
    """The error function, an op of CHLO."""
    load_chlo(value.context)
    return ir.Operation.create("chlo.erf", results=[value.type], operands=[value]).results[0]


def erf_inv(value: ir.Value) -> ir.Value:
    """The inverse of the error function, an op of CHLO."""
    load_chlo(value.context)
    return ir.Operation.create("chlo.erf_inv", results=[value.type], operands=[value]).results[0]


# ---- types, comparisons, constants -----------------------------------------------------------------------------------


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
    return broadcast_scalar(dense(value), dims)


def dense(elements: ir.DenseElementsAttr) -> ir.Value:
    """A constant of these elements."""
    return create("constant", [], elements.type, {"value": elements})


def size(value: Expr, element: ir.Type, dims: Dims = ()) -> ir.Value:
    """A size as an integer, everywhere."""
    if value.constant is not None:
        return constant(value.constant, element, dims)
    scalar = ShapeOp(dims_attr([value]), result=ir.RankedTensorType.get([], element)).results[0]
    return broadcast_scalar(scalar, dims)


# ---- shapes ----------------------------------------------------------------------------------------------------------


def shape_tensor(dims: Sequence[Expr]) -> ir.Value:
    """A `disc.shape` of rank 1 at the insertion point."""
    type_ = tensor_type((Expr.const(len(dims)),), ir.IntegerType.get_signless(64))
    return ir.Operation.create("disc.shape", results=[type_], attributes={"dims": dims_attr(dims)}).results[0]


def view(value: ir.Value, dims: Sequence[Expr]) -> ir.Value:
    """`value` with the sizes `dims`, which have the same product, at the insertion point."""
    known = _seen_as(value, tuple(dims))
    if known is not None:
        return known
    result = tensor_type(dims, element_type_of(value))
    if result.has_static_shape and ir.RankedTensorType(value.type).has_static_shape:
        return ir.Operation.create("stablehlo.reshape", results=[result], operands=[value]).results[0]
    operands = [value, shape_tensor(dims)]
    return ir.Operation.create("stablehlo.dynamic_reshape", results=[result], operands=operands).results[0]


def _seen_as(value: ir.Value, dims: Dims) -> ir.Value | None:
    """The value that `value` is a view of, or `value` itself, that has the sizes `dims`; None where nothing has."""
    while dims_of(value) != dims:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name not in RESHAPES:
            return None
        value = owner.operands[0]
    return value


def broadcast(
    value: ir.Value,
    dims: Sequence[Expr],
    positions: Sequence[int],
    shape: Callable[[Sequence[Expr]], ir.Value] = shape_tensor,
) -> ir.Value:
    """`value` broadcast to `dims`, its sizes standing at `positions`, at the insertion point.

    shape: what makes the tensor of symbolic sizes.
    """
    result = tensor_type(dims, element_type_of(value))
    attributes: dict[str, ir.Attribute] = {"broadcast_dimensions": ir.DenseI64ArrayAttr.get(list(positions))}
    if result.has_static_shape:
        op = ir.Operation.create(
            "stablehlo.broadcast_in_dim", results=[result], operands=[value], attributes=attributes
        )
        return op.results[0]
    operands = [value, shape(dims)]
    op = ir.Operation.create(
        "stablehlo.dynamic_broadcast_in_dim", results=[result], operands=operands, attributes=attributes
    )
    return op.results[0]


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """`value` with its axes in another order, at the insertion point."""
    dims = dims_of(value)
    result = tensor_type([dims[axis] for axis in permutation], element_type_of(value))
    attributes: dict[str, ir.Attribute] = {"permutation": ir.DenseI64ArrayAttr.get(list(permutation))}
    op = ir.Operation.create("stablehlo.transpose", results=[result], operands=[value], attributes=attributes)
    return op.results[0]


def broadcast_scalar(scalar: ir.Value, dims: Dims) -> ir.Value:
    """A scalar at every place of `dims`."""
    return broadcast(scalar, dims, []) if dims else scalar


def reduce(value: ir.Value, axes: Sequence[int], combining: str, start: float) -> ir.Value:
    """`value` reduced along some axes by the op `stablehlo.<combining>`, from a number on."""
    element = element_type_of(value)
    kept = [d for axis, d in enumerate(dims_of(value)) if axis not in axes]
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[tensor_type(kept, element)],
        operands=[value, constant(start, element)],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(list(axes))},
        regions=1,
    )
    scalar = ir.RankedTensorType.get([], element)
    body = ir.Block.create_at_start(op.regions[0], [scalar, scalar])
    with ir.InsertionPoint(body):
        ir.Operation.create("stablehlo.return", operands=[elementwise(combining, *body.arguments)])
    return op.results[0]


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
