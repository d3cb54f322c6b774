# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Properties of the body of a `reduce`, and so the orders in which its elements may be combined.

A monoid, such as a sum, may be taken in any order, from its neutral element. So may a reduction that finds where the
largest or smallest element stands, such as `argmax`. It combines pairs (value, place), and the places are those of the
elements, one after the other. Let g(a, b) be its body on two pairs, the one with the smaller place first. If g is
commutative, associative and idempotent, the elements may be combined by g in any order, and the first of two NaNs or of
two equal values is still the first.

A body of comparisons and choices cannot tell two sets of numbers apart that are in the same order. So these properties
of g hold for all numbers if they hold for all triples of NaN and three numbers, with all orders of three places, of
which there are few enough to try them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops import IOTAS
from shlo_disc.shape_dialect.ops.access import defining_op, resolve
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import is_constant

Array = np.ndarray
Pair = tuple[Array, Array]

_VALUES = np.array([np.nan, 0.0, 1.0, 2.0])
_PLACES = np.array([0.0, 1.0, 2.0])

_COMPARISONS = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_LOGIC = {"stablehlo.and": np.logical_and, "stablehlo.or": np.logical_or, "stablehlo.xor": np.logical_xor}

_PLACE_TYPES = frozenset({"i32", "ui32", "i64", "ui64"})
"""Types in which no row has so many places that they wrap around."""


_MONOIDS = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))


def monoid_of(body: ir.Block) -> str | None:
    """ "add", "maximum", ... when a body is that one op on one value; None for any other body."""
    ops = list(body.operations)
    if len(ops) != 2 or len(body.arguments) != 2:
        return None
    name = ops[0].operation.name.removeprefix("stablehlo.")
    arguments = set(body.arguments)
    is_plain = name in _MONOIDS and set(ops[0].operands) == arguments and ops[1].operands[0] == ops[0].results[0]
    return name if is_plain else None


def is_reorderable(op: ir.OpView) -> bool:
    """Tells whether lanes may combine every so many elements of a `reduce` each."""
    return monoid_of(op.regions[0].blocks[0]) is not None or is_arg_reduction(op)


def is_arg_reduction(op: ir.OpView) -> bool:
    """Tells whether a `reduce` finds an element and its place along its only axis, whatever the order it goes in."""
    if len(op.results) != 2 or str(element_type_of(op.results[1])) not in _PLACE_TYPES:
        return False
    return _is_numbered(op) and _starts_before(op.operands[3]) and _is_orderless(op.regions[0].blocks[0])


def _is_numbered(op: ir.OpView) -> bool:
    """Tells whether the second operand numbers the elements along the axis that is reduced."""
    axes = integers(op.attributes["dimensions"])
    places = resolve(op.operands[1], tuple(range(len(dims_of(op.operands[1])))))
    if len(axes) != 1 or places.made_by is None or places.made_by.name not in IOTAS or places.axes is None:
        return False
    along = ir.IntegerAttr(places.made_by.attributes["iota_dimension"]).value
    return places.axes[along] == axes[0]


def _starts_before(init: ir.Value) -> bool:
    """Tells whether the place that a reduction starts from is not behind the first element's."""
    op = defining_op(init)
    if op is None or not is_constant(op):
        return False
    return int(ir.DenseIntElementsAttr(op.attributes["value"]).get_splat_value().value) == 0


def _is_orderless(body: ir.Block) -> bool:
    """Tells whether a body, on pairs in the order of their places, is commutative, associative and idempotent."""
    values, places = (grid.ravel() for grid in np.meshgrid(_VALUES, _PLACES))
    index = np.indices((len(values),) * 3).reshape(3, -1)
    a, b, c = ((values[i], places[i]) for i in index)
    try:
        pairs = ((_ordered(body, a, b), _ordered(body, b, a)), (_ordered(body, a, a), a))
        sides = (_ordered(body, _ordered(body, a, b), c), _ordered(body, a, _ordered(body, b, c)))
    except _OtherOp:
        return False
    return all(_are_equal(left, right) for left, right in (*pairs, sides))


def _are_equal(left: Pair, right: Pair) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(left, right, strict=True))


class _OtherOp(Exception):
    """The body has an op that is no comparison or choice."""


def _ordered(body: ir.Block, a: Pair, b: Pair) -> Pair:
    """The body on two pairs, the one with the smaller place first."""
    is_first = a[1] <= b[1]
    first = [np.where(is_first, x, y) for x, y in zip(a, b, strict=True)]
    second = [np.where(is_first, y, x) for x, y in zip(a, b, strict=True)]
    return _run(body, [*first, *second])


def _run(body: ir.Block, arguments: Sequence[Array]) -> Pair:
    """The results of a body. Values and places are of two kinds, which must not be compared with each other."""
    known: dict[ir.Value, tuple[str, Array]] = {}
    for argument, kind, array in zip(body.arguments, ("value", "place") * 2, arguments, strict=True):
        known[argument] = kind, array
    *ops, terminator = body.operations
    for op in ops:
        if len(op.results) != 1 or any(v not in known for v in op.operands):
            raise _OtherOp
        known[op.results[0]] = _computed(op, [known[v] for v in op.operands])
    (kind, value), (other, place) = (known.get(v, ("", np.empty(0))) for v in terminator.operands)
    if (kind, other) != ("value", "place"):
        raise _OtherOp
    return value, place


def _computed(op: ir.OpView, operands: list[tuple[str, Array]]) -> tuple[str, Array]:
    name, kinds, arrays = op.operation.name, [kind for kind, _ in operands], [array for _, array in operands]
    if name == "stablehlo.compare" and kinds[0] == kinds[1] and not _is_total(op):
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        return "condition", _COMPARISONS[direction](*arrays)
    if name == "stablehlo.select" and kinds[0] == "condition" and kinds[1] == kinds[2]:
        return kinds[1], np.where(*arrays)
    if name in _LOGIC and set(kinds) == {"condition"}:
        return "condition", _LOGIC[name](*arrays)
    if name == "stablehlo.not" and kinds == ["condition"]:
        return "condition", np.logical_not(arrays[0])
    raise _OtherOp


def _is_total(comparison: ir.OpView) -> bool:
    """Tells whether NaN has a place in the order."""
    attributes = comparison.attributes
    return "compare_type" in attributes and "TOTALORDER" in str(attributes["compare_type"])
