# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the columns that a causal mask hides from a softmax, element by element at some sizes.

The symbols get numbers, and an element in a hidden column is computed as the range of what it can be: positions and
sizes are then numbers, scores and other arguments may be anything. What fuses proves the same for all sizes at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from shlo_disc.shape_dialect.dialect.names import SEEN
from shlo_disc.shape_dialect.dialect.problems import MOST_REACH, AttentionProblem, Causal
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, dims_of_attr, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GENERATORS, IOTAS

Range = tuple[float, float]
"""The least and the largest number that an element can be."""

Index = tuple[int, ...]

_ANY, _EITHER = (-math.inf, math.inf), (0.0, 1.0)

_FLOATS = ("f32", "f16", "bf16")
_ROUNDING = 2.0**-24
"""More than a number changes by where it is rounded to 24 bits, relative to itself."""

_TINY, _HUGE = 1.18e-38, 3.41e38
"""Numbers below the one are 0 as floats of 32 bits, those above the other infinite."""


def wrong_mask(rows: func.FuncOp, x: ir.Value, problem: AttentionProblem) -> str:
    """The fault in what is said of the hidden columns of a row kernel that is a softmax of `x`, "" if none is found."""
    causal, dims = problem.causal, dims_of(x)
    if causal is None:
        return ""
    if len(dims) < 2 or problem.rows.size != dims[-2]:
        return "its mask counts other rows than those of its matrices"
    ranges = (_Ranges(rows, sizes).of(x, index) for sizes, index in _samples(rows, dims, causal, hidden=True))
    if causal.bound is None or any(found[1] > causal.bound for found in ranges):
        return "columns that its mask should hide may be larger than their bound"
    is_right = all(_is_right(rows, op.operation, causal) for op in rows.entry_block.operations if SEEN in op.attributes)
    return "" if is_right else "a comparison is said to be something else than it is in columns that its mask shows"


def _is_right(rows: func.FuncOp, op: ir.Operation, causal: Causal) -> bool:
    """Tells whether what is said of a comparison in seen columns holds in some of them."""
    row, column, truth = ir.DenseI64ArrayAttr(op.attributes[SEEN])
    dims = dims_of(op.results[0])
    for sizes, (*_, at, across) in _samples(rows, (dims[row], dims[column]), causal, hidden=False):
        index = [0] * len(dims)
        index[row], index[column] = at, across
        if _Ranges(rows, sizes).of(op.results[0], tuple(index)) != (truth, truth):
            return False
    return True


def _samples(rows: func.FuncOp, dims: Dims, causal: Causal, hidden: bool) -> Iterator[tuple[Mapping[str, int], Index]]:
    """Numbers for the symbols, and elements that are hidden, or that are not."""
    values = [v for op in rows.entry_block.operations for v in (*op.operands, *op.results)]
    exprs = [*(d for v in values for d in dims_of(v)), causal.offset, causal.reach]
    names = sorted({name for expr in exprs for name in expr.symbols()})
    for first, step in ((5, 2), (9, -1), (6, 0)):
        sizes = {name: max(2, first + step * number) for number, name in enumerate(names)}
        shape = [d.evaluate(sizes) for d in dims]
        if min(shape) < 1 or causal.reach.evaluate(sizes) > MOST_REACH:
            continue
        offset = causal.offset.evaluate(sizes)
        for row in sorted({0, shape[-2] // 2, shape[-2] - 1}):
            last = row + offset
            columns = {max(0, last + 1), shape[-1] - 1} if hidden else {0, min(last, shape[-1] - 1)}
            for column in (c for c in columns if 0 <= c < shape[-1] and (c > last) == hidden):
                yield sizes, (*(size - 1 for size in shape[:-2]), row, column)


class _Ranges:
    """The ranges of elements of a kernel, at sizes that are numbers."""

    def __init__(self, rows: func.FuncOp, sizes: Mapping[str, int]):
        self.rows, self.sizes = rows, sizes

    def of(self, value: ir.Value, index: Index) -> Range:
        """The range of an element."""
        wanted: dict[ir.Value, set[Index]] = defaultdict(set)
        wanted[value].add(index)
        ops = [op.operation for op in self.rows.entry_block.operations if len(op.results) == 1]
        for op in reversed(ops):
            for at in wanted[op.results[0]]:
                for operand, place in self._reads(op, at):
                    wanted[operand].add(place)
        known = {(v, at): _unknown(v) for v in self.rows.entry_block.arguments for at in wanted[v]}
        for op in ops:
            for at in wanted[op.results[0]]:
                known[op.results[0], at] = self._compute(op, at, [known[read] for read in self._reads(op, at)])
        return known[value, index]

    def _reads(self, op: ir.Operation, at: Index) -> list[tuple[ir.Value, Index]]:
        """The elements that an op makes one of; none where it is not known how."""
        if op.name in BROADCASTS:
            targets = list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
            sizes = [d.evaluate(self.sizes) for d in dims_of(op.operands[0])]
            return [(op.operands[0], tuple(at[t] if d != 1 else 0 for t, d in zip(targets, sizes, strict=True)))]
        if op.name in ELEMENTWISE:
            return [(v, at if dims_of(v) else ()) for v in op.operands]
        return []

    def _compute(self, op: ir.Operation, at: Index, operands: list[Range]) -> Range:
        result = op.results[0]
        if op.name in GENERATORS:
            return self._generated(op, at)
        name = op.name.removeprefix("stablehlo.")
        if op.name in BROADCASTS:
            return operands[0]
        if name == "convert":
            return _converted(op, operands[0])
        if name == "compare":
            return _compared(op, *operands)
        is_logic = name in ("and", "or", "not")
        rule = _RULES.get(name)
        if rule is None or op.name not in ELEMENTWISE or (is_logic and str(element_type_of(result)) != "i1"):
            return _unknown(result)
        found = rule(*operands)
        return _unknown(result) if found is None else _as_element(found, str(element_type_of(result)))

    def _generated(self, op: ir.Operation, at: Index) -> Range:
        number: float | None = None
        if op.name in IOTAS:
            number = at[ir.IntegerAttr(op.attributes["iota_dimension"]).value]
        elif op.name == "disc.shape":
            number = dims_of_attr(op.attributes["dims"])[at[0] if at else 0].evaluate(self.sizes)
        elif ir.DenseElementsAttr(op.attributes["value"]).is_splat:
            found = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
            number = float(found.value) if isinstance(found, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr) else None
        is_known = number is not None and not math.isnan(number)
        return (number, number) if is_known and number is not None else _unknown(op.results[0])


def _unknown(value: ir.Value) -> Range:
    return _EITHER if str(element_type_of(value)) == "i1" else _ANY


def _as_element(found: Range, element: str) -> Range:
    """The range of what a result is rounded to."""

    def rounded(number: float) -> float:
        if element not in _FLOATS:
            return number
        return 0.0 if abs(number) < _TINY else math.copysign(math.inf, number) if abs(number) > _HUGE else number

    return rounded(found[0]), rounded(found[1])


def _errors(x: Range) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both ends of a range, with the error of each where it is rounded, relative to it."""
    return (x[0], -_ROUNDING), (x[1], _ROUNDING)


def _converted(op: ir.Operation, x: Range) -> Range:
    source, result = (str(element_type_of(v)) for v in (op.operands[0], op.results[0]))
    if source == "f64" and result == "f32":
        least, most = (end + abs(end) * error if math.isfinite(end) else end for end, error in _errors(x))
        return _unknown(op.results[0]) if math.isnan(least + most) else _as_element((least, most), result)
    is_exact = source in ("i1", *_FLOATS) and result in _FLOATS
    return x if is_exact or (source in ("i1", "i32") and result in ("i32", "i64")) else _unknown(op.results[0])


def _compared(op: ir.Operation, left: Range, right: Range) -> Range:
    """A comparison of integers is decided where their ranges do not overlap; floats may be NaN."""
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    if str(element_type_of(op.operands[0])) not in ("i32", "i64"):
        return _EITHER
    if direction in ("GT", "GE"):
        left, right, direction = right, left, {"GT": "LT", "GE": "LE"}[direction]
    is_true = {"LT": left[1] < right[0], "LE": left[1] <= right[0]}.get(direction, False)
    is_false = {"LT": left[0] >= right[1], "LE": left[0] > right[1]}.get(direction, False)
    return (1.0, 1.0) if is_true else (0.0, 0.0) if is_false else _EITHER


def _ends(function: Callable[[float, float], float]) -> Callable[[Range, Range], Range | None]:
    """The range of a function that is monotonous in both operands."""

    def apply(a: Range, b: Range) -> Range | None:
        ends = [function(p, q) for p in a for q in b]
        return None if any(map(math.isnan, ends)) else (min(ends), max(ends))

    return apply


def _quotient(a: Range, b: Range) -> Range | None:
    return None if b[0] <= 0 <= b[1] else _ends(lambda p, q: p / q)(a, b)


def _power(x: float) -> float:
    return math.inf if x > 700 else math.exp(x)


def _chosen(choice: Range, yes: Range, no: Range) -> Range:
    if choice[0] == choice[1]:
        return yes if choice[0] else no
    return min(yes[0], no[0]), max(yes[1], no[1])


_RULES: dict[str, Callable[..., Range | None]] = {
    "add": _ends(lambda p, q: p + q),
    "subtract": _ends(lambda p, q: p - q),
    "multiply": _ends(lambda p, q: p * q),
    "maximum": _ends(max),
    "minimum": _ends(min),
    "and": _ends(min),
    "or": _ends(max),
    "not": lambda x: (1 - x[1], 1 - x[0]),
    "negate": lambda x: (-x[1], -x[0]),
    "tanh": lambda x: (math.tanh(x[0]), math.tanh(x[1])),
    "exponential": lambda x: (_power(x[0]), _power(x[1])),
    "divide": _quotient,
    "select": _chosen,
}
"""The range of a result by those of the operands; None where it may be anything."""
