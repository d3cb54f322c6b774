# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of attributes."""

from __future__ import annotations

from typing import Any

from shlo_disc.shape_dialect.dialect.names import PRECISION
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.mlir import ir

_FLOATS = ("f32", "f64")
_INTEGERS = ("i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_ARRAYS: tuple[tuple[Any, str], ...] = (
    (ir.DenseBoolArrayAttr, "i1"),
    (ir.DenseI8ArrayAttr, "i8"),
    (ir.DenseI16ArrayAttr, "i16"),
    (ir.DenseI32ArrayAttr, "i32"),
    (ir.DenseI64ArrayAttr, "i64"),
    (ir.DenseF32ArrayAttr, "f32"),
    (ir.DenseF64ArrayAttr, "f64"),
)


def integers(attribute: ir.Attribute) -> list[int]:
    """The elements of an `array<i64: ...>` attribute."""
    return list(_integers(attribute))


@remembered
def _integers(attribute: ir.Attribute) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(attribute))


def attribute_values(attribute: ir.Attribute) -> tuple[str, list[str], bool] | None:
    """The type ("f32", "string"), the elements and whether it is an array; None for other kinds of attribute.

    Integers are written in decimal, floats in hexadecimal.
    """
    if isinstance(attribute, ir.StringAttr):
        return "string", [attribute.value], False
    if isinstance(attribute, ir.BoolAttr):
        return "i1", [str(int(attribute.value))], False
    if isinstance(attribute, ir.IntegerAttr):
        name = str(attribute.type).replace("ui", "u").replace("si", "i")
        return (name, [str(attribute.value)], False) if name in _INTEGERS else None
    if isinstance(attribute, ir.FloatAttr):
        name = str(attribute.type)
        return (name, [float(attribute.value).hex()], False) if name in _FLOATS else None
    if isinstance(attribute, ir.DenseIntElementsAttr | ir.DenseFPElementsAttr):
        tensor = ir.RankedTensorType(attribute.type)
        name = str(tensor.element_type).replace("ui", "u")
        if tensor.rank != 1 or name not in (*_FLOATS, *_INTEGERS):
            return None
        values = [attribute[i] for i in range(len(attribute))]
        return name, [v.hex() if isinstance(v, float) else str(int(v)) for v in values], True
    for kind, name in _ARRAYS:
        if isinstance(attribute, kind):
            values = list(kind(attribute))
            return name, [v.hex() if isinstance(v, float) else str(int(v)) for v in values], True
    return None


def precision_attributes(op: ir.OpView | ir.Operation) -> dict[str, Any]:
    """The attributes that state the precision of a product, for the op that replaces it."""
    return {name: op.attributes[name] for name in ("precision_config", PRECISION) if name in op.attributes}
