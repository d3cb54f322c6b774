# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranges of a row kernel's values where a mask lets elements through, and where it hides them.

Every value gets two ranges: that of the elements that the mask lets through, and that of the others. Both are followed
through elementwise ops, broadcasts, and reductions along the columns. What the mask is, subclasses of `MaskWalk` say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, IOTAS
from shlo_disc.shape_dialect.ops.access import is_scalar_constant
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import is_constant

MOST_FACTOR, MOST_CONSTANT = 1 << 15, 1 << 40
"""The largest factors and constants of positions that are followed: their sums with sizes cannot overflow 64 bits."""

_ZERO_EXPONENT = {"f32": -200.0, "f64": -1500.0}
"""Arguments up to which an exponential is 0, with a margin."""

_LIMITS = {"f32": (1.18e-38, 3.4028234663852886e38), "f64": (2.3e-308, 1.7976931348623157e308)}
"""The smallest normal number, with a margin, and the largest one."""

_ROUNDS = frozenset({"add", "subtract", "multiply", "divide"})
"""The ops that round."""

MOST_COLUMNS = 1 << 31
"""More than the elements of a row."""

_NARROW_ROUNDING, _NARROW = 0.01, frozenset({"f16", "bf16"})
"""More than an op of 16 bits rounds by, relative to its result; and these elements."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, never NaN; booleans are 0 and 1."""

    low: float
    high: float

    def joined(self, other: Range) -> Range:
        """Both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def rounded(self, by: float = 1e-6) -> Range:
        """The range of the numbers after an op that rounds them; of 32 bits, by less than what is given."""
        low = self.low - by * abs(self.low) if math.isfinite(self.low) else self.low
        high = self.high + by * abs(self.high) if math.isfinite(self.high) else self.high
        return Range(low, high)

    def of_type(self, element: str) -> Range:
        """The range of the numbers as elements: large ones infinite, small ones zero."""
        if element not in _LIMITS:
            return self
        tiny, huge = _LIMITS[element]
        low = -math.inf if self.low < -huge else self.low
        high = math.inf if self.high > huge else self.high
        return Range(0 if 0 < low < tiny else low, 0 if -tiny < high < 0 else high)


ZERO, ONE, EITHER = Range(0, 0), Range(1, 1), Range(0, 1)
NONE = Range(-math.inf, -math.inf)

Affine = tuple[tuple[int, ...], Expr]
"""Factors of a value's indices, and a constant."""


@dataclass(frozen=True)
class MaskedValue:
    """The facts known of a value: None stands for nothing.

    seen, hidden: its elements where the mask lets them through, and elsewhere. axes: its row and its column axis, when
    the two differ. peak: one of the seen elements of each row lies in it. top: of which value it is the largest element
    of a row. affine: what makes its elements, if they are positions.
    """

    seen: Range | None = None
    hidden: Range | None = None
    axes: tuple[int, int] | None = None
    peak: Range | None = None
    top: ir.Value | None = None
    affine: Affine | None = None

    def rounded(self) -> MaskedValue:
        """The facts that can be known of floats of 16 bits, which are off by less than a hundredth."""
        seen, hidden = (r and r.rounded(_NARROW_ROUNDING) for r in (self.seen, self.hidden))
        return MaskedValue(seen, hidden, self.axes)

    def of_type(self, element: str) -> MaskedValue:
        """The facts that can be known of elements of a type: ranges of floats and booleans, positions of integers."""
        if element in ("i32", "i64"):
            return replace(self, seen=None, hidden=None, peak=None, top=None)
        if element not in ("f32", "f64", "i1"):
            return MaskedValue()
        seen, hidden, peak = (r and r.of_type(element) for r in (self.seen, self.hidden, self.peak))
        return replace(self, seen=seen, hidden=hidden, peak=peak, affine=None)


@dataclass(frozen=True)
class Scores:
    """Argument `argument` of a row kernel, collapsed to one axis of columns, and the scores that it stands for.

    `is_matrix`: neither key nor value has the last axis of rows, so that these are the rows of one matrix.
    `x`: of what a softmax is, where rows come in pieces.
    """

    function: func.FuncOp
    argument: int
    dims: Dims
    is_matrix: bool
    x: ir.Value | None = None


class MaskWalk:
    """A walk over the ops of a row kernel. magnitude: a bound of the scores; None where they may be anything."""

    def __init__(self, scores: Scores, magnitude: int | None):
        self.magnitude = magnitude
        block = scores.function.entry_block
        self.subject = scores
        self.operations = list(block.operations)
        self.scores = block.arguments[scores.argument]
        self.rank = len(dims_of(self.scores))
        self.known: dict[ir.Value, MaskedValue] = {}
        self.changed: list[ir.OpView] = []
        for value in block.arguments:
            is_truth = str(element_type_of(value)) == "i1"
            self.known[value] = MaskedValue(EITHER, EITHER) if is_truth else MaskedValue()
        if magnitude is not None:
            known = Range(-magnitude, magnitude)
            self.known[self.scores] = MaskedValue(known, known).of_type(str(element_type_of(self.scores)))

    def follow(self) -> None:
        """Learn of all values of the kernel, in their order."""
        for op in self.operations[:-1]:
            for result in op.results:
                self.known[result] = self._typed(self.value(op.operation, result), str(element_type_of(result)))

    @property
    def result(self) -> MaskedValue:
        """The facts known of the weights."""
        return self.known[self.operations[-1].operands[0]]

    def _typed(self, value: MaskedValue, element: str) -> MaskedValue:
        """The facts that can be known of elements of a type; of 16 bits only where no scores are part of it."""
        return value.rounded() if self.magnitude is None and element in _NARROW else value.of_type(element)

    def is_in_place(self, value: MaskedValue) -> bool:
        """Tells whether a value's hidden elements are those of hidden columns."""
        return value.axes in (None, (self.rank - 2, self.rank - 1))

    def compare(self, op: ir.Operation, left: MaskedValue, right: MaskedValue) -> MaskedValue:
        """The facts known of a comparison, which may come out either way."""
        return MaskedValue(EITHER, EITHER)

    # ---- values -----------------------------------------------------------------------------------------------------

    def value(self, op: ir.Operation, result: ir.Value) -> MaskedValue:
        """The facts known of an op's result, whatever its type."""
        if op.name == "stablehlo.reduce":
            return self._reduce(op.opview)
        if op.name in BROADCASTS:
            return self._broadcast(op, result)
        if op.name == "disc.shape":
            dims = dims_of_attr(op.attributes["dims"])
            return MaskedValue(affine=((), dims[0])) if not dims_of(result) else MaskedValue()
        if op.name in IOTAS:
            axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
            return MaskedValue(affine=(tuple(int(i == axis) for i in range(len(dims_of(result)))), Expr.const(0)))
        if is_constant(op):
            return self._constant(op, result)
        operands = [self.known[v] for v in op.operands]
        axes = {v.axes for v in operands} - {None}
        if len(axes) > 1:
            return MaskedValue()
        value = self._elementwise(op, operands)
        return replace(value, axes=value.axes or (axes.pop() if axes else None))

    @staticmethod
    def _constant(op: ir.Operation, result: ir.Value) -> MaskedValue:
        if not is_scalar_constant(op):
            return MaskedValue()
        number = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        if isinstance(number, ir.FloatAttr) and not math.isnan(number.value):
            return MaskedValue(Range(number.value, number.value), Range(number.value, number.value))
        element = str(element_type_of(result))
        if element == "i1":
            truth = ONE if number.value else ZERO
            return MaskedValue(truth, truth)
        if element in ("i32", "i64") and abs(number.value) <= MOST_CONSTANT:
            return MaskedValue(affine=((0,) * len(dims_of(result)), Expr.const(number.value)))
        return MaskedValue()

    def _broadcast(self, op: ir.Operation, result: ir.Value) -> MaskedValue:
        """Each size of 1 and each other size has its place in the result."""
        value, places = self.known[op.operands[0]], list(integers(op.attributes["broadcast_dimensions"]))
        if dims_of(op.operands[0]) != tuple(dims_of(result)[p] for p in places):
            return MaskedValue()
        affine, axes = value.affine, value.axes
        if affine is not None:
            factors = [0] * len(dims_of(result))
            for place, factor in zip(places, affine[0], strict=True):
                factors[place] = factor
            affine = (tuple(factors), affine[1])
        is_back = len(dims_of(result)) == self.rank and places == list(range(self.rank - 1))
        top = value.top if is_back or not places else None
        return replace(value, affine=affine, axes=axes and (places[axes[0]], places[axes[1]]), top=top)

    # ---- elementwise ------------------------------------------------------------------------------------------------

    def _elementwise(self, op: ir.Operation, operands: list[MaskedValue]) -> MaskedValue:
        name = op.name.removeprefix("stablehlo.")
        if name == "compare":
            return self.compare(op, *operands)
        if name == "select":
            return _select(*operands)
        affine = affine_of(name, operands)
        if affine is not None:
            return MaskedValue(affine=affine)
        if name == "convert":
            return self._converted(op, operands[0])
        exponential = _exponential_of(str(element_type_of(op.results[0])))
        rule = exponential if name == "exponential" else _RULES.get(name)
        if rule is None:
            return MaskedValue()

        def apply(parts: list[Range | None]) -> Range | None:
            known = [p for p in parts if p is not None]
            found = rule(*known) if len(known) == len(parts) else None
            return found.rounded() if found is not None and name in _ROUNDS else found

        value = MaskedValue(apply([v.seen for v in operands]), apply([v.hidden for v in operands]))
        top = operands[1].top if name == "subtract" else None
        if top is not None and top == op.operands[0] and value.seen is not None:
            return replace(value, seen=Range(value.seen.low, 0), peak=ZERO)
        if name == "exponential" and operands[0].peak is not None:
            return replace(value, peak=exponential(operands[0].peak))
        if name == "maximum" and NONE in (operands[0].seen, operands[1].seen):
            return replace(value, top=operands[0].top or operands[1].top)
        return value

    def _converted(self, op: ir.Operation, value: MaskedValue) -> MaskedValue:
        kind, result = (str(element_type_of(v)) for v in (op.operands[0], op.results[0]))
        if kind == "i1" or (self.magnitude is None and {kind, result} <= {*_NARROW, "f32"}):
            return MaskedValue(value.seen, value.hidden)
        if {kind, result} <= {"f32", "f64"}:
            seen, hidden = (r and r.rounded() for r in (value.seen, value.hidden))
            return MaskedValue(seen, hidden)
        return MaskedValue()

    # ---- reductions -------------------------------------------------------------------------------------------------

    def _reduce(self, op: ir.OpView) -> MaskedValue:
        """A reduction along the columns; it is noted where hidden elements may change it."""
        found = self._unchanged(op) if len(op.operands) == 2 else None
        if found is None:
            self.changed.append(op)
        return found or MaskedValue()

    def _unchanged(self, op: ir.OpView) -> MaskedValue | None:
        body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
        value, init = (self.known[v] for v in op.operands)
        along = list(integers(op.attributes["dimensions"]))
        seen, hidden, start = value.seen, value.hidden, init.seen
        if along != [self.rank - 1] or len(dims_of(op.operands[0])) != self.rank or not self.is_in_place(value):
            return None
        if len(body) != 2 or not _combines_both(op) or seen is None or hidden is None or start is None:
            return None
        if body[0] == "stablehlo.maximum" and hidden.high <= seen.low:
            whole = Range(max(seen.low, start.low), max(seen.high, start.high))
            return MaskedValue(whole, whole, top=op.operands[0] if start == NONE else None)
        if body[0] == "stablehlo.add" and hidden == ZERO and start == ZERO:
            whole = Range(value.peak.low if value.peak else 0, math.inf)
            signed = Range(seen.low * MOST_COLUMNS, seen.high * MOST_COLUMNS)
            whole = whole if seen.low >= 0 else signed
            return MaskedValue(whole, whole)
        return None


def _combines_both(op: ir.OpView) -> bool:
    """Tells whether the body of a reduction is one op of both its arguments."""
    block = op.regions[0].blocks[0]
    combined, returned = block.operations
    return set(combined.operands) == set(block.arguments) and list(returned.operands) == list(combined.results)


def _exponential_of(element: str) -> Callable[[Range], Range]:
    zero = _ZERO_EXPONENT.get(element, -math.inf)

    def apply(x: Range) -> Range:
        if x.high <= zero:
            return ZERO
        high = math.inf if x.high > 700 else math.exp(x.high) * 1.001
        return Range(math.exp(x.low) * 0.999 if x.low > -80 else 0, high)

    return apply


def affine_of(name: str, operands: list[MaskedValue]) -> Affine | None:
    if name == "convert":
        return operands[0].affine
    if len(operands) != 2 or operands[0].affine is None or operands[1].affine is None:
        return None
    (left, a), (right, b) = operands[0].affine, operands[1].affine
    if name == "multiply":
        x, y = a.constant, b.constant
        if any(left) and any(right) or x is None or y is None:
            return None
        return _followed(tuple(f * y + g * x for f, g in zip(left, right, strict=True)), Expr.const(x * y))
    sign = {"add": 1, "subtract": -1}.get(name)
    if sign is None:
        return None
    return _followed(tuple(f + sign * g for f, g in zip(left, right, strict=True)), a + sign * b)


def _followed(factors: tuple[int, ...], constant: Expr) -> Affine | None:
    """A position, unless its numbers are too large."""
    is_far = any(abs(f) > MOST_FACTOR for f in factors) or abs(constant.constant or 0) > MOST_CONSTANT
    return None if is_far else (factors, constant)


def _select(choice: MaskedValue, yes: MaskedValue, no: MaskedValue) -> MaskedValue:
    def pick(truth: Range | None, a: Range | None, b: Range | None) -> Range | None:
        if truth in (ONE, ZERO):
            return a if truth == ONE else b
        return None if a is None or b is None else a.joined(b)

    peak = {ONE: yes.peak, ZERO: no.peak}.get(choice.seen or EITHER)
    return MaskedValue(pick(choice.seen, yes.seen, no.seen), pick(choice.hidden, yes.hidden, no.hidden), peak=peak)


def _corners(function: Callable[[float, float], float]) -> Callable[[Range, Range], Range | None]:
    """The range of a function that is monotonous in both operands."""

    def apply(a: Range, b: Range) -> Range | None:
        ends = [function(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return None if any(math.isnan(e) for e in ends) else Range(min(ends), max(ends))

    return apply


def _divide(a: Range, b: Range) -> Range | None:
    if b.low <= 0:
        return None
    return ZERO if a == ZERO else _corners(lambda x, y: x / y)(a, b)


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
    "tanh": lambda a: Range(-1.001, 1.001),
    "divide": _divide,
}
"""The range of a result by those of the operands; None where it may be anything."""
