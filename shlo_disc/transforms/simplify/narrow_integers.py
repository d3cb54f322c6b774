# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of 8 and 4 bits in the form in which a program reads them: converted, less a zero point, or two in a byte;
and floats of 8 bits, converted.

Two integers of a byte are told apart by an index of size 2, of which 0 is the low half: a `bitcast_convert`, a shift by
0 or 4 bits, or a concatenation of both halves. A value counts as integers only where no step can overflow or round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import bits_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import BROADCASTS, SLICES
from shlo_disc.shape_dialect.ops.access import defining_op, is_scalar_constant
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.simplify.index_digits import Digit, Read, source_of, split, static_sizes

CODES = ("i8", "ui8", "i4", "ui4", "i4 pairs", "ui4 pairs", "f8E4M3FN", "f8E5M2",
         "places", "places pairs", "ui8 places", "i8 places")  # fmt: skip
"""As `Code` in runtime/native/kernels/dequantized_kernels.h."""

FLOATS_OF_8_BITS = ("f8E4M3FN", "f8E5M2")
"""Floats of 8 bits that f16, bf16 and f32 have."""

_SIGNIFICANT = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
"""Bits of a float's significand: integers of so many bits are exact."""

_STORED = {*SLICES, "stablehlo.dynamic_slice"}

_LARGEST_ZERO = 1 << 20
"""The largest zero point among constants: others are no zero points of narrow integers."""


@dataclass(frozen=True)
class Integers:
    """Integers, or floats of 8 bits, that a value consists of: the bytes that hold them, the range of integers, and the
    ops on the way, last first.

    half: the digit that tells the halves of a byte apart. zero: the zero point that is taken off, for which the range
    allows. has_range: whether that is known, as it is where zero points are integers. difference_bits: those of the
    type in which a zero point of any integer is taken off, which may wrap; 0 elsewhere. table: the 16 floats, or a
    value that has them, of which they are places (`table_lookups.py`).
    """

    data: Read
    code: str
    low: int
    high: int
    ops: tuple[ir.Operation, ...] = ()
    half: Digit | None = None
    zero: Read | None = None
    has_range: bool = True
    difference_bits: int = 0
    table: tuple[float, ...] | ir.Value | None = None


def integers_of(read: Read) -> Integers | None:
    """The integers that a value consists of; None where it is none of the forms."""
    found = source_of(read)
    op = None if found is None else defining_op(found.value)
    if found is None:
        return None
    name = "" if op is None else op.name
    if op is not None and name in ("stablehlo.convert", "stablehlo.subtract"):
        inner = integers_of(Read(op.operands[0], found.at))
        step = None if inner is None else _less(inner, op, found) if name == "stablehlo.subtract" else inner
        if step is None or not _holds(element_type_of(found.value), step):
            return None
        return replace(step, ops=(op, *step.ops))
    pairs = None if op is None else _pairs(op, found)
    if pairs is not None:
        return pairs
    element, stored = str(element_type_of(found.value)), _stored(found)
    if element not in CODES or stored is None:
        return None
    return Integers(stored, element, *(_range(element) if element not in FLOATS_OF_8_BITS else (0, 0)))


def is_stored(found: Integers) -> bool:
    """Tells whether integers are an argument, a constant, or a slice of one, and not computed."""
    op = defining_op(found.data.value)
    return op is None or is_constant(op) or op.name in _STORED


def _range(element: str) -> tuple[int, int]:
    """The values of an integer type."""
    bits = int(element.lstrip("ui"))
    return (0, (1 << bits) - 1) if element.startswith("ui") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _holds(element: ir.Type, found: Integers) -> bool:
    """Tells whether a type has all the values, exactly; floats less a zero point that is a float have it themselves."""
    if found.code in FLOATS_OF_8_BITS:
        return str(element) in ("f16", "bf16", "f32")
    if not found.has_range:
        return str(element) in ("f32", f"i{found.difference_bits}")
    if not isinstance(element, ir.IntegerType):
        most = 1 << _SIGNIFICANT.get(str(element), 0)
        return -most <= found.low and found.high <= most
    low, high = _range(str(element))
    return bits_of(element) > 1 and low <= found.low and found.high <= high


# ---- zero points -----------------------------------------------------------------------------------------------------


def _less(found: Integers, op: ir.Operation, read: Read) -> Integers | None:
    """Integers less a zero point: an integer of any type, or an f32 that is subtracted from an f32.

    Where a difference of integers may wrap, or is more than an f32 has, it is one of i32 or i64 that becomes an f32.
    """
    zero = source_of(Read(op.operands[1], read.at))
    if zero is None or found.zero is not None or found.code in FLOATS_OF_8_BITS:
        return None
    limits = _limits(zero)
    if limits is None:
        is_f32 = str(element_type_of(zero.value)) == "f32"
        return replace(found, zero=zero, has_range=False) if is_f32 else None
    least, most, narrowest = limits
    found = replace(found, zero=narrowest, low=found.low - most, high=found.high - least)
    is_wide = max(-found.low, found.high) > _LARGEST_ZERO and str(element_type_of(read.value)) in ("i32", "i64")
    return replace(found, has_range=False, difference_bits=bits_of(element_type_of(read.value))) if is_wide else found


def _limits(read: Read) -> tuple[int, int, Read] | None:
    """The least and the most that integers can be, and a read of the narrowest value that has them; None for others."""
    found = source_of(read)
    if found is None:
        return None
    op, element = defining_op(found.value), element_type_of(found.value)
    if op is not None and op.name == "stablehlo.convert":
        inner = _limits(Read(op.operands[0], found.at))
        if inner is not None and _holds(element, Integers(found, "", *inner[:2])):
            return inner
    if op is not None and is_constant(op) and bits_of(element) > 1 and not isinstance(element, ir.ComplexType):
        numbers = array_of(op).astype(np.float64)
        is_whole = numbers.size > 0 and bool((np.abs(numbers) <= _LARGEST_ZERO).all() and (numbers % 1 == 0).all())
        return (int(numbers.min()), int(numbers.max()), found) if is_whole else None
    if not isinstance(element, ir.IntegerType) or bits_of(element) == 1:
        return None
    return (*_range(str(element) if element.is_unsigned else f"i{element.width}"), found)


# ---- two in a byte ---------------------------------------------------------------------------------------------------


def _pairs(op: ir.Operation, read: Read) -> Integers | None:
    """Halves of bytes."""
    if op.name == "stablehlo.bitcast_convert":
        return _bitcast_pairs(op, read)
    if op.name == "stablehlo.and":
        return _shifted_pairs(op, read)
    return _stacked_pairs(op, read) if op.name == "stablehlo.concatenate" else None


def _found(data: Read, is_signed: bool, half: Digit, ops: tuple[ir.Operation, ...]) -> Integers | None:
    source = _stored(data)
    if source is None or str(element_type_of(source.value)) not in ("i8", "ui8"):
        return None
    name = "i4" if is_signed else "ui4"
    return Integers(source, f"{name} pairs", *_range(name), ops, half)


def _stored(read: Read) -> Read | None:
    """The same bytes under whichever type they are stored."""
    found = source_of(read)
    while found is not None and (op := defining_op(found.value)) is not None and op.name == "stablehlo.bitcast_convert":
        if bits_of(element_type_of(op.operands[0])) != bits_of(element_type_of(found.value)):
            break
        found = source_of(Read(op.operands[0], found.at))
    return found


def _bitcast_pairs(op: ir.Operation, read: Read) -> Integers | None:
    """A byte as two elements of 4 bits, along a further axis."""
    source, target = element_type_of(op.operands[0]), str(element_type_of(op.results[0]))
    if bits_of(source) != 8 or target not in ("i4", "ui4") or len(read.at[-1]) != 1:
        return None
    return _found(Read(op.operands[0], read.at[:-1]), target == "i4", read.at[-1][0], (op,))


def _shifted_pairs(op: ir.Operation, read: Read) -> Integers | None:
    """`bytes >> [0, 4] & 15`."""
    masked = _masked(op)
    shift = None if masked is None else defining_op(masked)
    if shift is None or shift.name not in _SHIFTS_RIGHT:
        return None
    amounts = source_of(Read(shift.operands[1], read.at))
    digits = [] if amounts is None else [digit for coordinate in amounts.at for digit in coordinate]
    made = None if amounts is None else defining_op(amounts.value)
    if made is None or not is_constant(made) or len(digits) != 1 or array_of(made).ravel().tolist() != [0, 4]:
        return None
    return _found(Read(shift.operands[0], read.at), False, digits[0], (op, shift))


def _stacked_pairs(op: ir.Operation, read: Read) -> Integers | None:
    """Low halves, and high halves behind them along an axis."""
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    sizes = [static_sizes(v) for v in op.operands]
    if len(sizes) != 2 or sizes[0] is None or sizes[0] != sizes[1]:
        return None
    parts = split(read.at[axis], sizes[0][axis])
    if parts is None or len(parts[0]) != 1 or parts[0][0].size != 2:
        return None
    at = (*read.at[:axis], parts[1], *read.at[axis + 1 :])
    low, high = (_half(Read(v, at)) for v in op.operands)
    if low is None or high is None or low.data != high.data or low.is_signed != high.is_signed:
        return None
    if low.is_high or not high.is_high:
        return None
    return _found(low.data, low.is_signed, parts[0][0], (op, *low.ops, *high.ops))


_SHIFTS_RIGHT = ("stablehlo.shift_right_logical", "stablehlo.shift_right_arithmetic")


@dataclass(frozen=True)
class _Half:
    """The low or the high halves of bytes, and the ops on the way, last first."""

    data: Read
    is_high: bool
    is_signed: bool
    ops: tuple[ir.Operation, ...]


def _half(read: Read) -> _Half | None:
    """The halves that a value consists of, converted or not."""
    found = source_of(read)
    op = None if found is None else defining_op(found.value)
    if found is None or op is None:
        return None
    if op.name != "stablehlo.convert":
        return _half_by_bits(op, found)
    inner = _half(Read(op.operands[0], found.at))
    if inner is None:
        return None
    values = Integers(found, "", *_range("i4" if inner.is_signed else "ui4"))
    return replace(inner, ops=(op, *inner.ops)) if _holds(element_type_of(found.value), values) else None


def _half_by_bits(op: ir.Operation, read: Read) -> _Half | None:
    """`bytes & 15`, `bytes >> 4`, `bytes >> 4 & 15`, and `bytes << 4 >> 4` of signed bytes."""
    masked = _masked(op)
    if masked is not None:
        shift = defining_op(masked)
        if shift is None or shift.name not in _SHIFTS_RIGHT or not _is_splat(shift.operands[1], 4):
            return _half_of(Read(masked, read.at), False, False, (op,))
        return _half_of(Read(shift.operands[0], read.at), True, False, (op, shift))
    if op.name not in _SHIFTS_RIGHT or not _is_splat(op.operands[1], 4):
        return None
    is_signed, inner = op.name == _SHIFTS_RIGHT[1], defining_op(op.operands[0])
    if is_signed and inner is not None and inner.name == "stablehlo.shift_left" and _is_splat(inner.operands[1], 4):
        return _half_of(Read(inner.operands[0], read.at), False, True, (op, inner))
    return _half_of(Read(op.operands[0], read.at), True, is_signed, (op,))


def _half_of(bytes_: Read, is_high: bool, is_signed: bool, ops: tuple[ir.Operation, ...]) -> _Half | None:
    found = source_of(bytes_)
    element = "" if found is None else str(element_type_of(found.value))
    fits = element == "i8" or (element == "ui8" and not is_signed)
    return _Half(found, is_high, is_signed, ops) if found is not None and fits else None


def _masked(op: ir.Operation) -> ir.Value | None:
    """The value of which an op keeps the low 4 bits; None for other ops."""
    if op.name != "stablehlo.and":
        return None
    return next((op.operands[n] for n in (0, 1) if _is_splat(op.operands[1 - n], 15)), None)


def _is_splat(value: ir.Value, number: int) -> bool:
    """Tells whether all elements of a value are one number."""
    op = defining_op(value)
    while op is not None and op.name in BROADCASTS:
        op = defining_op(op.operands[0])
    return op is not None and is_scalar_constant(op) and int(array_of(op).ravel()[0]) == number


__all__ = ["CODES", "Integers", "integers_of", "is_stored"]
