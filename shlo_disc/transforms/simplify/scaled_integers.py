# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Narrow integers that a program scales: `q * scale`, `q / scale`, and `q * scale + bias`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import defining_op, is_scalar_constant
from shlo_disc.transforms.simplify.index_digits import Read, source_of
from shlo_disc.transforms.simplify.narrow_integers import Integers
from shlo_disc.transforms.simplify.table_lookups import elements_of

OF_16_BITS = ("bf16", "f16")
FLOATS = ("f32", *OF_16_BITS)
"""Element types of products; those of weights by their positions are `Rounding` in runtime/native/kernels."""


class Scaled(NamedTuple):
    """Integers, the scale that they are multiplied or divided by, and what is added to them or, with a `bias_sign` of
    -1, taken off; `rounding`: the type to which the result of all that is rounded."""

    integers: Integers
    scale: Read | None
    rounding: str = "f32"
    divides: bool = False
    bias: Read | None = None
    bias_sign: int = 1


def scaled_integers(read: Read) -> Scaled | None:
    """The form of a value as scaled integers; None where it is none of them."""
    if (integers := elements_of(read)) is not None:
        return Scaled(integers, None)
    ops: tuple[ir.Operation, ...] = ()
    found, op = _source(read)
    if op is not None and _is_conversion(op, OF_16_BITS, "f32"):
        ops, (found, op) = (op,), _source(Read(op.operands[0], found.at))
    rounding = str(element_type_of(found.value))
    if op is not None and _is_conversion(op, ("f32",), *OF_16_BITS):
        ops, (found, op) = (*ops, op), _source(Read(op.operands[0], found.at))
    if op is None or rounding not in FLOATS:
        return None
    own = _biased(op, found) if op.name in ("stablehlo.add", "stablehlo.subtract") else _by_scale(op, found)
    return None if own is None else own._replace(integers=_behind(own.integers, *ops), rounding=rounding)


def _biased(op: ir.Operation, read: Read) -> Scaled | None:
    """`q * scale + bias` or `q * scale - bias`, in f32: products are not rounded to less."""
    if str(element_type_of(read.value)) != "f32":
        return None
    sign = 1 if op.name == "stablehlo.add" else -1
    for number in (0, 1) if sign == 1 else (0,):
        found, multiply = _source(Read(op.operands[number], read.at))
        own = None if multiply is None else _by_scale(multiply, found)
        bias = _narrowest(Read(op.operands[1 - number], read.at))
        if own is not None and bias is not None and not own.divides and own.integers.zero is None:
            return own._replace(integers=_behind(own.integers, op), bias=bias, bias_sign=sign)
    return None


def _by_scale(op: ir.Operation, read: Read) -> Scaled | None:
    """`q * scale` or `q / scale`."""
    if str(element_type_of(read.value)) not in FLOATS or op.name not in ("stablehlo.multiply", "stablehlo.divide"):
        return None
    divides = op.name == "stablehlo.divide"
    for number in (0,) if divides else (0, 1):
        integers = elements_of(Read(op.operands[number], read.at))
        scale = None if integers is None else _narrowest(Read(op.operands[1 - number], read.at))
        if integers is not None and scale is not None:
            return Scaled(_behind(integers, op), scale, divides=divides)
    return None


def _behind(integers: Integers, *ops: ir.Operation) -> Integers:
    """Integers that further ops compute something of, last first."""
    return replace(integers, ops=(*ops, *integers.ops))


def number_of(read: Read) -> float | None:
    """The one number that all elements of a read are; None where it is no constant."""
    op = defining_op(read.value)
    return float(array_of(op).ravel()[0]) if op is not None and is_scalar_constant(op) else None


def is_normal(number: float) -> bool:
    """Tells whether a number is a normal one of f32."""
    return bool(np.finfo(np.float32).tiny <= abs(number) <= np.finfo(np.float32).max)


def _source(read: Read) -> tuple[Read, ir.Operation | None]:
    """The read of what is moved there, and the op that computes that."""
    found = source_of(read) or read
    return found, defining_op(found.value)


def _is_conversion(op: ir.Operation, sources: Sequence[str], *targets: str) -> bool:
    types = [str(element_type_of(value)) for value in (*op.operands, *op.results)]
    return op.name == "stablehlo.convert" and types[0] in sources and types[1] in targets


def _narrowest(read: Read) -> Read | None:
    """A read of floats before they have become wider."""
    found = source_of(read)
    op = None if found is None else defining_op(found.value)
    if found is None or op is None or not _is_conversion(op, OF_16_BITS, "f32"):
        return found
    return _narrowest(Read(op.operands[0], found.at))


__all__ = ["FLOATS", "OF_16_BITS", "Scaled", "is_normal", "number_of", "scaled_integers"]
