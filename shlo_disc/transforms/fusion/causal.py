# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which columns a causal mask hides from a row kernel, proved from the kernel's ops.

Every value of the kernel gets two ranges: that of its elements in columns up to `row + offset`, which the mask lets
through, and that of the others. If the others never change a reduction and the result is exactly 0 there, nobody has to
compute them. The proof holds while the scores are finite and no larger than a magnitude, which is for the runtime to
look at: scores of 1e12 would show through a mask that adds -1e9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.types import dims_of, element_type_of
from shlo_disc.transforms.fusion.access import BROADCASTS, IOTAS, is_scalar_constant

MAGNITUDES = (100_000_000, 1_000_000, 1_000)
"""Bounds of the scores for which a proof is tried; scores are seldom above 100."""

_ZERO_EXPONENT = {"f32": -200.0, "f64": -1500.0}
"""Arguments up to which an exponential is 0, with room to spare."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, never NaN; booleans are 0 and 1."""

    low: float
    high: float

    def joined(self, other: Range) -> Range:
        """Both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


_ZERO, _ONE, _EITHER = Range(0, 0), Range(1, 1), Range(0, 1)
_NONE = Range(-math.inf, -math.inf)


@dataclass(frozen=True)
class Value:
    """What is known of a value: None stands for nothing.

    seen, hidden: its elements where the mask lets them through, and elsewhere. axes: its row and its column axis, when
    the two differ. peak: one of the seen elements of each row lies in it. top: of which value it is the largest element
    of a row. affine: factors of its indices and a constant that make its elements.
    """

    seen: Range | None = None
    hidden: Range | None = None
    axes: tuple[int, int] | None = None
    peak: Range | None = None
    top: ir.Value | None = None
    affine: tuple[tuple[int, ...], int] | None = None


@dataclass(frozen=True)
class Causal:
    """Column c of row r counts only where c <= r + offset, while scores are no larger than `magnitude`."""

    offset: int
    magnitude: int


CAUSAL = "disc.causal"
"""Attribute of a row kernel that need not look at all columns: the offset and the magnitude."""


def causal_columns(function: func.FuncOp, argument: int) -> Causal | None:
    """What a row kernel, collapsed to one axis of columns, hides of its argument `argument`, the scores."""
    for magnitude in MAGNITUDES:
        proof = _Proof(function, argument, magnitude)
        if proof.holds():
            return Causal(proof.offset or 0, magnitude)
    return None


class _Proof:
    def __init__(self, function: func.FuncOp, argument: int, magnitude: int):
        block = function.entry_block
        self.operations = list(block.operations)
        self.scores = block.arguments[argument]
        self.rank = len(dims_of(self.scores))
        self.element = str(element_type_of(self.scores))
        self.offset: int | None = None
        self.known: dict[ir.Value, Value] = {}
        for value in block.arguments:
            is_truth = str(element_type_of(value)) == "i1"
            self.known[value] = Value(_EITHER, _EITHER) if is_truth else Value()
        scores = Range(-magnitude, magnitude)
        self.known[self.scores] = Value(scores, scores)

    def holds(self) -> bool:
        """Whether hidden columns count for nothing."""
        if self.rank < 2:
            return False
        for op in self.operations[:-1]:
            if op.operation.name == "stablehlo.reduce":
                found = self._reduce(op)
                if found is None:
                    return False
                self.known[op.results[0]] = found
            elif op.operation.name != "disc.shape":
                for result in op.results:
                    value = self._value(op.operation, result)
                    is_index = str(element_type_of(result)) in ("i32", "i64")
                    self.known[result] = value if is_index else replace(value, affine=None)
        result = self.known[self.operations[-1].operands[0]]
        return self.offset is not None and self.offset >= 0 and result.hidden == _ZERO and self._is_in_place(result)

    def _is_in_place(self, value: Value) -> bool:
        return value.axes in (None, (self.rank - 2, self.rank - 1))

    def _value(self, op: ir.Operation, result: ir.Value) -> Value:
        if op.name in BROADCASTS:
            return self._broadcast(op, result)
        if op.name in IOTAS:
            axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
            return Value(affine=(tuple(int(i == axis) for i in range(len(dims_of(result)))), 0))
        if op.name == "stablehlo.constant":
            return self._constant(op, result)
        operands = [self.known[v] for v in op.operands]
        axes = {v.axes for v in operands} - {None}
        if len(axes) > 1:
            return Value()
        value = self._elementwise(op, operands)
        return replace(value, axes=value.axes or (axes.pop() if axes else None))

    @staticmethod
    def _constant(op: ir.Operation, result: ir.Value) -> Value:
        if not is_scalar_constant(op):
            return Value()
        number = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        if isinstance(number, ir.FloatAttr) and not math.isnan(number.value):
            return Value(Range(number.value, number.value), Range(number.value, number.value))
        if isinstance(number, ir.IntegerAttr):
            return Value(affine=((0,) * len(dims_of(result)), number.value))
        return Value()

    def _broadcast(self, op: ir.Operation, result: ir.Value) -> Value:
        """Each size of 1 and each other size has its place in the result."""
        value, places = self.known[op.operands[0]], list(integers(op.attributes["broadcast_dimensions"]))
        if dims_of(op.operands[0]) != tuple(dims_of(result)[p] for p in places):
            return Value()
        affine, axes = value.affine, value.axes
        if affine is not None:
            factors = [0] * len(dims_of(result))
            for place, factor in zip(places, affine[0], strict=True):
                factors[place] = factor
            affine = (tuple(factors), affine[1])
        return replace(value, affine=affine, axes=axes and (places[axes[0]], places[axes[1]]))

    # ---- elementwise ------------------------------------------------------------------------------------------------

    def _elementwise(self, op: ir.Operation, operands: list[Value]) -> Value:
        name = op.name.removeprefix("stablehlo.")
        if name == "compare":
            return self._compare(op, *operands)
        if name == "select":
            return _select(*operands)
        affine = _affine(name, operands)
        if affine is not None:
            return Value(affine=affine)
        rule = self._exponential if name == "exponential" else _RULES.get(name)
        if rule is None:
            return Value()

        def apply(parts: list[Range | None]) -> Range | None:
            known = [p for p in parts if p is not None]
            return rule(*known) if len(known) == len(parts) else None

        value = Value(apply([v.seen for v in operands]), apply([v.hidden for v in operands]))
        top = operands[1].top if name == "subtract" else None
        if top is not None and top == op.operands[0] and value.seen is not None:
            return replace(value, seen=Range(value.seen.low, 0), peak=_ZERO)
        if name == "exponential" and operands[0].peak is not None:
            return replace(value, peak=self._exponential(operands[0].peak))
        if name == "maximum" and _NONE in (operands[0].seen, operands[1].seen):
            return replace(value, top=operands[0].top or operands[1].top)
        return value

    def _compare(self, op: ir.Operation, left: Value, right: Value) -> Value:
        """The mask, where it compares a column with a row; any other comparison may come out either way."""
        unknown = Value(_EITHER, _EITHER)
        direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
        difference = _affine("subtract", [left, right])
        if difference is None or direction not in ("LE", "LT", "GE", "GT"):
            return unknown
        factors, constant = difference
        if direction in ("GE", "GT"):
            factors, constant = tuple(-f for f in factors), -constant
        most = -constant - (direction in ("LT", "GT"))  # true where the factors' sum is at most this
        axes = [i for i, f in enumerate(factors) if f != 0]
        if len(axes) != 2 or sorted(factors[i] for i in axes) != [-1, 1]:
            return unknown
        lets_through = factors[axes[1]] == 1
        offset = most if lets_through else -most - 1
        if self.offset not in (None, offset):
            return unknown
        self.offset = offset
        seen, hidden = (_ONE, _ZERO) if lets_through else (_ZERO, _ONE)
        return Value(seen, hidden, (axes[0], axes[1]))

    def _exponential(self, x: Range) -> Range:
        zero = _ZERO_EXPONENT.get(self.element, -math.inf)
        if x.high <= zero:
            return _ZERO
        high = math.inf if x.high > 700 else math.exp(x.high) * 1.001
        return Range(math.exp(x.low) * 0.999 if x.low > -80 else 0, high)

    # ---- reductions -------------------------------------------------------------------------------------------------

    def _reduce(self, op: ir.OpView) -> Value | None:
        """A reduction along the columns that hidden elements do not change; None for any other."""
        body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        value, init = (self.known[v] for v in op.operands) if len(op.operands) == 2 else (Value(), Value())
        along = list(integers(op.attributes["dimensions"]))
        seen, hidden, start = value.seen, value.hidden, init.seen
        if along != [self.rank - 1] or len(body) != 2 or not self._is_in_place(value):
            return None
        if seen is None or hidden is None or start is None:
            return None
        if body[0] == "stablehlo.maximum" and hidden.high <= seen.low:
            whole = Range(max(seen.low, start.low), max(seen.high, start.high))
            return Value(whole, whole, top=op.operands[0] if start == _NONE else None)
        if body[0] == "stablehlo.add" and hidden == _ZERO and start == _ZERO and seen.low >= 0:
            whole = Range(value.peak.low if value.peak else 0, math.inf)
            return Value(whole, whole)
        return None


def _affine(name: str, operands: list[Value]) -> tuple[tuple[int, ...], int] | None:
    if name == "convert":
        return operands[0].affine
    if len(operands) != 2 or operands[0].affine is None or operands[1].affine is None:
        return None
    (left, a), (right, b) = operands[0].affine, operands[1].affine
    if name == "multiply":
        if any(left) and any(right):
            return None
        return tuple(x * b + y * a for x, y in zip(left, right, strict=True)), a * b
    sign = {"add": 1, "subtract": -1}.get(name)
    return None if sign is None else (tuple(x + sign * y for x, y in zip(left, right, strict=True)), a + sign * b)


def _select(choice: Value, yes: Value, no: Value) -> Value:
    def pick(truth: Range | None, a: Range | None, b: Range | None) -> Range | None:
        if truth in (_ONE, _ZERO):
            return a if truth == _ONE else b
        return None if a is None or b is None else a.joined(b)

    peak = {_ONE: yes.peak, _ZERO: no.peak}.get(choice.seen or _EITHER)
    return Value(pick(choice.seen, yes.seen, no.seen), pick(choice.hidden, yes.hidden, no.hidden), peak=peak)


def _corners(function: Callable[[float, float], float]) -> Callable[[Range, Range], Range | None]:
    """The range of a function that is monotonous in both operands."""

    def apply(a: Range, b: Range) -> Range | None:
        ends = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return None if any(math.isnan(e) for e in ends) else Range(min(ends), max(ends))

    return apply


def _divide(a: Range, b: Range) -> Range | None:
    if b.low <= 0:
        return None
    return _ZERO if a == _ZERO else _corners(lambda x, y: x / y)(a, b)


_RULES: dict[str, Callable[..., Range | None]] = {
    "add": _corners(lambda x, y: x + y),
    "subtract": _corners(lambda x, y: x - y),
    "multiply": _corners(lambda x, y: x * y),
    "maximum": _corners(max),
    "minimum": _corners(min),
    "and": _corners(min),
    "or": _corners(max),
    "not": lambda a: Range(1 - a.high, 1 - a.low),
    "negate": lambda a: Range(-a.high, -a.low),
    "divide": _divide,
}
