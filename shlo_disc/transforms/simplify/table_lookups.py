# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Narrow integers that are places in a table of floats, `table[q]`, as NF4 (Dettmers et al., QLoRA, 2023) has them.

What a program computes of an integer on the way, such as the place from the end for a negative one, is evaluated for
each integer that there is: all that counts is the place that it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import ml_dtypes
import numpy as np

from shlo_disc.shape_dialect.dense import array_of
from shlo_disc.shape_dialect.dialect.types import bits_of, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir, stablehlo
from shlo_disc.shape_dialect.ops.access import defining_op, is_scalar_constant
from shlo_disc.shape_dialect.utils.attributes import integers as integers_in
from shlo_disc.shape_dialect.utils.regions import is_constant
from shlo_disc.transforms.simplify.index_digits import Read, source_of, static_sizes
from shlo_disc.transforms.simplify.narrow_integers import Integers, integers_of, is_stored

PLACES = 16
"""Floats of a table."""

_CODES = {"ui4": "places", "i4": "places", "ui4 pairs": "places pairs", "i4 pairs": "places pairs",
          "ui8": "ui8 places", "i8": "i8 places"}  # fmt: skip
"""The codes of places by those of the integers that they are computed of."""

_TABLES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


class _Values(NamedTuple):
    """The values of an integer or a boolean by the bits of the stored integer that it is computed of, or one value for
    all where it is computed of none; and the ops that compute it."""

    of: Integers | None
    numbers: np.ndarray
    ops: tuple[ir.Operation, ...] = ()


def elements_of(read: Read) -> Integers | None:
    """The integers that a value consists of, or the places of a table; None where it is none of the forms."""
    return integers_of(read) or _looked_up(read)


def _looked_up(read: Read) -> Integers | None:
    found = source_of(read)
    op = None if found is None else defining_op(found.value)
    if found is None or op is None:
        return None
    if op.name == "stablehlo.convert":
        return _converted(_looked_up(Read(op.operands[0], found.at)), op)
    if op.name == "stablehlo.gather":
        return _gathered(op, found, None)
    return _filled(op, found) if op.name == "stablehlo.select" else None


def _converted(found: Integers | None, op: ir.Operation) -> Integers | None:
    """Elements of a table as another type of floats: a constant one is rounded itself."""
    if found is None or found.table is None:
        return None
    source, target = (str(element_type_of(value)) for value in (*op.operands, *op.results))
    if target not in _TABLES:
        return None
    table = found.table
    if isinstance(table, tuple):
        table = tuple(_rounded(np.asarray(table, np.float32), target).tolist())
    elif target not in (source, "f32"):
        return None
    return replace(found, table=table, ops=(op, *found.ops))


def _rounded(numbers: np.ndarray, target: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return numbers.astype(_TABLES[target]).astype(np.float32)


def _filled(op: ir.Operation, read: Read) -> Integers | None:
    """A lookup where places are inside the table, and one number (NaN) for others."""
    inside, otherwise = _values(Read(op.operands[0], read.at)), source_of(Read(op.operands[2], read.at))
    looked, filler = (
        source_of(Read(op.operands[1], read.at)),
        None if otherwise is None else defining_op(otherwise.value),
    )
    gather = None if looked is None else defining_op(looked.value)
    if inside is None or looked is None or gather is None or gather.name != "stablehlo.gather":
        return None
    if filler is None or not is_scalar_constant(filler):
        return None
    found = _gathered(gather, looked, (inside, float(array_of(filler).ravel()[0])))
    return None if found is None else replace(found, ops=(op, *found.ops, *inside.ops))


def _gathered(op: ir.Operation, read: Read, fill: tuple[_Values, float] | None) -> Integers | None:
    """The elements of a table at places that are computed of one stored integer."""
    places = _places(op, read)
    table = op.operands[0]
    if places is None or places.of is None or str(element_type_of(table)) not in _TABLES:
        return None
    own, size = places.of, dims_of(table)[0].constant
    if size is None or size < 1 or (fill is not None and fill[0].of is not None and not _are_same(fill[0].of, own)):
        return None
    numbers = np.clip(places.numbers, 0, size - 1)
    inside = np.broadcast_to(True if fill is None else fill[0].numbers.astype(bool), numbers.shape)
    by_place = _by_place(own.code, np.where(inside, numbers, -1))
    if by_place is None:
        return None
    source = defining_op(table)
    if source is not None and is_constant(source):
        whole = array_of(source).astype(np.float32)
        found = np.where(by_place < 0, np.float32(0 if fill is None else fill[1]), whole[by_place])
        content: tuple[float, ...] | ir.Value = tuple(found.tolist())
    elif size == PLACES and by_place.tolist() == list(range(PLACES)):
        content = table
    else:
        return None
    return replace(own, code=_CODES[own.code], has_range=False, table=content, ops=(op, *places.ops))


def _by_place(code: str, numbers: np.ndarray) -> np.ndarray | None:
    """The numbers of the 16 places, of those of all bits of an integer; None where other bits have others."""
    if len(numbers) == PLACES:
        return numbers
    bits = np.arange(256)
    if code == "ui8":
        place = np.minimum(bits, PLACES - 1)
    else:
        place = np.clip(bits.astype(np.uint8).view(np.int8).astype(np.int64), -PLACES, PLACES - 1) % PLACES
    return numbers[:PLACES] if (numbers[place] == numbers).all() else None


def _places(op: ir.Operation, read: Read) -> _Values | None:
    """The places that a gather of single elements of a table reads."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    collapsed, offsets = list(numbers.collapsed_slice_dims), list(numbers.offset_dims)
    is_of_elements = (
        len(dims_of(op.operands[0])) == 1
        and list(numbers.start_index_map) == [0]
        and not list(numbers.operand_batching_dims)
        and integers_in(op.attributes["slice_sizes"]) == [1]
        and len(collapsed) + len(offsets) == 1
    )
    if not is_of_elements:
        return None
    at = [coordinate for axis, coordinate in enumerate(read.at) if axis not in offsets]
    if numbers.index_vector_dim < len(dims_of(op.operands[1])):
        at.insert(numbers.index_vector_dim, ())
    return _values(Read(op.operands[1], tuple(at)))


# ---- the values of a computed integer --------------------------------------------------------------------------------


def _values(read: Read) -> _Values | None:
    found = source_of(read)
    op = None if found is None else defining_op(found.value)
    if found is None:
        return None
    if op is not None and is_scalar_constant(op):
        is_integer = isinstance(element_type_of(found.value), ir.IntegerType)
        return _Values(None, array_of(op).ravel()[:1].astype(np.int64)) if is_integer else None
    stored = integers_of(found)
    if stored is not None and stored.zero is None and stored.code in _CODES and is_stored(stored):
        return _Values(stored, _numbers_of(stored.code), stored.ops)
    if op is None or op.name not in _EVALUATED:
        return None
    if op.name == "stablehlo.reduce":
        return _of_one(op, found)
    operands = [_values(Read(operand, found.at)) for operand in op.operands]
    return _applied(op, operands)


def _numbers_of(code: str) -> np.ndarray:
    """The values of an integer by its bits."""
    bits = 8 if code in ("ui8", "i8") else 4
    numbers = np.arange(1 << bits)
    return numbers if code.startswith("ui") else (numbers ^ (1 << (bits - 1))) - (1 << (bits - 1))


def _applied(op: ir.Operation, operands: Sequence[_Values | None]) -> _Values | None:
    """An op of each value."""
    known = [operand for operand in operands if operand is not None]
    sources = [operand.of for operand in known if operand.of is not None]
    if len(known) != len(operands) or not all(_are_same(source, sources[0]) for source in sources):
        return None
    wrapped = _wrapped(element_type_of(op.results[0]), _EVALUATED[op.name](op, *(operand.numbers for operand in known)))
    ops = (op, *(each for operand in known for each in operand.ops))
    return None if wrapped is None else _Values(sources[0] if sources else None, wrapped, ops)


def _wrapped(element: ir.Type, numbers: np.ndarray) -> np.ndarray | None:
    """Integers as a type has them; None for other types."""
    if not isinstance(element, ir.IntegerType) or bits_of(element) > 32:
        return numbers if isinstance(element, ir.IntegerType) and (np.abs(numbers) < 1 << 62).all() else None
    bits = bits_of(element)
    if bits == 1:
        return (numbers != 0).astype(np.int64)
    low = 0 if element.is_unsigned else -(1 << (bits - 1))
    return (numbers - low) % (1 << bits) + low


def _of_one(op: ir.Operation, read: Read) -> _Values | None:
    """A conjunction along axes of one place each."""
    axes, sizes = integers_in(op.attributes["dimensions"]), static_sizes(op.operands[0])
    start = defining_op(op.operands[1])
    inner = [each.operation.name for each in op.regions[0].blocks[0].operations]
    if sizes is None or any(sizes[axis] != 1 for axis in axes) or inner != ["stablehlo.and", "stablehlo.return"]:
        return None
    if len(op.operands) != 2 or start is None or not is_scalar_constant(start) or not array_of(start).all():
        return None
    at = list(read.at)
    for axis in sorted(axes):
        at.insert(axis, ())
    found = _values(Read(op.operands[0], tuple(at)))
    return (
        None if found is None or str(element_type_of(op.results[0])) != "i1" else found._replace(ops=(op, *found.ops))
    )


def _compared(op: ir.Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    return _COMPARISONS[direction](a, b).astype(np.int64)


_COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip

_EVALUATED: dict[str, Callable[..., np.ndarray]] = {
    "stablehlo.convert": lambda op, a: a,
    "stablehlo.add": lambda op, a, b: a + b,
    "stablehlo.subtract": lambda op, a, b: a - b,
    "stablehlo.and": lambda op, a, b: a & b,
    "stablehlo.minimum": lambda op, a, b: np.minimum(a, b),
    "stablehlo.maximum": lambda op, a, b: np.maximum(a, b),
    "stablehlo.clamp": lambda op, low, a, high: np.minimum(np.maximum(a, low), high),
    "stablehlo.select": lambda op, which, a, b: np.asarray(np.where(which != 0, a, b)),
    "stablehlo.compare": _compared,
    "stablehlo.reduce": lambda op, a, start: a,
}
"""The functions of ops on integers of any size; results are wrapped to their types."""


def _are_same(one: Integers, other: Integers) -> bool:
    """Tells whether two values are computed of the same stored integers."""
    return (one.data, one.code, one.half) == (other.data, other.code, other.half)


__all__ = ["PLACES", "elements_of"]
