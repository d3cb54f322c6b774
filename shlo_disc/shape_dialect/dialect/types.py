# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic tensor types: reading sizes from encodings and building types from sizes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.dtypes import BY_MLIR
from shlo_disc.shape_dialect.mlir import ir, quant
from shlo_disc.shape_dialect.symbolic.expr import Expr

Dims = tuple[Expr, ...]

DYNAMIC = ir.ShapedType.get_dynamic_size()


def dim_attr(dim: Expr) -> ir.Attribute:
    """`768 : i64` for a constant, `@"2*b"` otherwise."""
    constant = dim.constant
    if constant is not None:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), constant)
    return ir.FlatSymbolRefAttr.get(str(dim))


def dim_of_attr(attribute: ir.Attribute) -> Expr:
    """The inverse of `dim_attr`. Raises ValueError, or ProgramError on a name that is no expression."""
    if isinstance(attribute, ir.IntegerAttr):
        return Expr.const(attribute.value)
    return Expr.parse(ir.FlatSymbolRefAttr(attribute).value)


def dims_attr(dims: Iterable[Expr]) -> ir.ArrayAttr:
    """The encoding of a shape."""
    return _dims_attr(tuple(dims))


@remembered
def _dims_attr(dims: Dims) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([dim_attr(d) for d in dims])


def dims_of_attr(attribute: ir.Attribute) -> Dims:
    """The inverse of `dims_attr`."""
    return tuple(dim_of_attr(a) for a in ir.ArrayAttr(attribute))


def tensor_type(dims: Sequence[Expr], element_type: ir.Type) -> ir.RankedTensorType:
    """`tensor<?x768xf32, [@b, 768]>`; no encoding when every size is static."""
    return _tensor_type((tuple(dims), element_type))


@remembered
def _tensor_type(of: tuple[Dims, ir.Type]) -> ir.RankedTensorType:
    dims, element_type = of
    sizes = [d.constant for d in dims]
    if None not in sizes:
        return ir.RankedTensorType.get([s for s in sizes if s is not None], element_type)
    return ir.RankedTensorType.get([DYNAMIC if s is None else s for s in sizes], element_type, dims_attr(dims))


def has_dims(type_: ir.Type) -> bool:
    """True when every size of a ranked tensor type is known, as a number or as a symbol."""
    tensor = ir.RankedTensorType(type_)
    return tensor.has_static_shape or tensor.encoding is not None


def has_encoding(type_: ir.Type) -> bool:
    """Tells whether a type is a ranked tensor with symbolic sizes."""
    return isinstance(type_, ir.RankedTensorType) and type_.encoding is not None


def dims_of(value: ir.Value | ir.Type) -> Dims:
    """The symbolic sizes of a value or a type. Raises ValueError on a `?` without a symbol."""
    return _read_dims(value if isinstance(value, ir.Type) else value.type)


@remembered
def _read_dims(type_: ir.Type) -> Dims:
    tensor = ir.RankedTensorType(type_)
    if tensor.has_static_shape:
        return tuple(Expr.const(s) for s in tensor.shape)
    if tensor.encoding is None:
        raise ValueError(f"the type {tensor} has a size without a symbol")
    return dims_of_attr(tensor.encoding)


def element_type_of(value: ir.Value | ir.Type) -> ir.Type:
    """The element type of a tensor value or type."""
    return ir.RankedTensorType(value if isinstance(value, ir.Type) else value.type).element_type


def product(dims: Iterable[Expr]) -> Expr:
    """The number of elements."""
    return _product(tuple(dims))


@functools.lru_cache(maxsize=4096)
def _product(dims: Dims) -> Expr:
    total = Expr.const(1)
    for dim in dims:
        total = total * dim
    return total


def storage_type(element_type: ir.Type) -> ir.Type:
    """The integers that hold the elements of a quantized type; any other type as it is."""
    if not isinstance(element_type, quant.QuantizedType):
        return element_type
    width = ir.IntegerType(element_type.storage_type).width
    return ir.IntegerType.get_signless(width) if element_type.is_signed else ir.IntegerType.get_unsigned(width)


def bits_of(element_type: ir.Type) -> int:
    """The bits of an element's value; 1 for a boolean, 4 for an i4."""
    return BY_MLIR[str(storage_type(element_type))].bits


def bytes_of(element_type: ir.Type) -> int:
    """The storage size of an element, in bytes (a boolean takes one, and so does a type of fewer than 8 bits)."""
    return BY_MLIR[str(element_type)].bytes
