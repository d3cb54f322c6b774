# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Row kernels that are a softmax of something made element by element: those can be done while a row comes in.

With w = exp(x - max x) / sum exp(x - max x), what a row adds up to with weights w is known for the elements seen so
far, and is scaled when a larger one comes (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018).
So a kernel of attention needs neither whole rows of scores nor a second look at them (FlashAttention, Dao et al.,
2022). Any number that is the same for a row may be subtracted from it, and conversions between floats of 16 and 32 bits
in between are not repeated: the kernel works with 32 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS, ELEMENTWISE, GENERATORS
from shlo_disc.shape_dialect.ops.access import defining_op, scalar_number
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.transforms.decisions import Pattern

ONLINE_SOFTMAX: Pattern[OnlineSoftmax] = Pattern(
    "online-softmax", "the softmax of a row is done while the row comes in"
)

FLOATS = frozenset({"f32", "f16", "bf16"})
"""Element types between which conversions are left out."""


@dataclass(frozen=True)
class Scores:
    """Argument `argument` of a row kernel, from which its one result is made."""

    function: func.FuncOp
    argument: int

    @property
    def value(self) -> ir.Value:
        """The argument."""
        return self.function.entry_block.arguments[self.argument]


@dataclass(frozen=True)
class OnlineSoftmax:
    """The parts of a softmax: `x`, from which `peak` is subtracted for the exponential `power`, over the sum `total`.

    peak, total: along the row, the same for all of it. largest, added: the reductions that they come from. hides:
    whether rows of nothing but -inf give 0; else they give NaN.
    """

    scores: Scores
    x: ir.Value
    power: ir.Value
    peak: ir.Value
    total: ir.Value
    largest: ir.Operation
    added: ir.Operation
    hides: bool

    @staticmethod
    def of(scores: Scores) -> OnlineSoftmax | None:
        """The candidate with the form of a softmax; whether it is one is for the conditions to say."""
        *_, last = scores.function.entry_block.operations
        quotient = _made_by(_exact(last.operands[0]), "divide")
        power = None if quotient is None else _made_by(_exact(quotient.operands[0]), "exponential")
        difference = None if power is None else _made_by(_exact(power.operands[0]), "subtract")
        if quotient is None or power is None or difference is None:
            return None
        x, peak, total = difference.operands[0], _exact(difference.operands[1]), _exact(quotient.operands[1])
        largest, is_finite = _largest(_of_row(peak))
        added, is_guarded = _added(_of_row(total), largest)
        if largest is None or added is None:
            return None
        return OnlineSoftmax(scores, x, power.results[0], peak, total, largest, added, is_finite and is_guarded)

    @property
    def rank(self) -> int:
        """The rank of a row kernel's domain: axes of rows, and one of columns."""
        return len(dims_of(self.x))


def online_softmax(scores: Scores) -> OnlineSoftmax | None:
    """The softmax that a row kernel is, if all that is needed is proved."""
    return ONLINE_SOFTMAX.match(OnlineSoftmax.of, scores)


# ---- form -----------------------------------------------------------------------------------------------------------


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    op = defining_op(value)
    return op if op is not None and op.name == f"stablehlo.{name}" else None


def _exact(value: ir.Value) -> ir.Value:
    """A value before conversions between floats."""
    op = _made_by(value, "convert")
    while op is not None and {str(element_type_of(v)) for v in (op.operands[0], value)} <= FLOATS:
        value = op.operands[0]
        op = _made_by(value, "convert")
    return value


def _of_row(value: ir.Value) -> ir.Value:
    """The value that is broadcast to a row."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name in BROADCASTS else value


def _number(value: ir.Value) -> float | None:
    """The number that all elements of a constant are, before conversions to floats."""
    op = defining_op(value)
    while op is not None and (op.name in BROADCASTS or _is_to_float(op)):
        op = defining_op(op.operands[0])
    return None if op is None else scalar_number(op)


def _is_to_float(op: ir.Operation) -> bool:
    """Tells whether an op converts floats, or whole numbers, to floats."""
    if op.name != "stablehlo.convert" or str(element_type_of(op.results[0])) not in FLOATS:
        return False
    return str(element_type_of(op.operands[0])) in FLOATS | {"i32", "i64"}


def _largest(peak: ir.Value) -> tuple[ir.Operation | None, bool]:
    """The reduction behind what is subtracted, and whether 0 stands for -inf."""
    value, other = _chosen(peak)
    reduce = _reduction(value)
    is_finite = other is not None and other[1] == 0 and _is_least(other[0], reduce)
    return (reduce if other is None or is_finite else None), is_finite


def _reduction(value: ir.Value) -> ir.Operation | None:
    """The reduction that a value is, but for conversions and for what is not below -inf."""
    bound = _made_by(_exact(value), "maximum")
    if bound is None:
        return _made_by(_exact(value), "reduce")
    others = [v for v in bound.operands if _number(v) != -math.inf]
    return _reduction(others[0]) if len(others) == 1 else None


def _added(total: ir.Value, largest: ir.Operation | None) -> tuple[ir.Operation | None, bool]:
    """The reduction behind what is divided by, and whether 1 stands for it where the largest element is -inf."""
    value, other = _chosen(total)
    reduce = _made_by(_exact(value), "reduce")
    is_guarded = other is not None and other[1] == 1 and _is_least(other[0], largest)
    return (reduce if other is None or is_guarded else None), is_guarded


def _chosen(value: ir.Value) -> tuple[ir.Value, tuple[ir.Value, float] | None]:
    """For select(condition, number, other): the other, and the condition with the number."""
    select = _made_by(_exact(value), "select")
    number = None if select is None else _number(select.operands[1])
    if select is None or number is None:
        return value, None
    return select.operands[2], (select.operands[0], number)


def _is_least(condition: ir.Value, largest: ir.Operation | None) -> bool:
    """Tells whether a condition is that the result of a reduction is -inf."""
    compare = _made_by(condition, "compare")
    if compare is None or largest is None:
        return False
    if str(compare.attributes["comparison_direction"]).split()[-1].rstrip(">") != "EQ":
        return False
    left, right = compare.operands
    return _reduction(left) == largest and _number(right) == -math.inf


# ---- what has to hold -----------------------------------------------------------------------------------------------


def _reduces(op: ir.Operation, name: str, start: float) -> bool:
    """Tells whether a reduction does one op with all elements, from a number on."""
    if len(op.operands) != 2 or _number(op.operands[1]) != start:
        return False
    block = op.regions[0].blocks[0]
    combined, *others = block.operations
    is_last = len(others) == 1 and list(others[0].operands) == list(combined.results)
    return is_last and combined.operation.name == f"stablehlo.{name}" and set(combined.operands) == set(block.arguments)


@ONLINE_SOFTMAX.requires("what is subtracted is the largest element of the row, of all that it is subtracted from")
def _peak_is_of_x(s: OnlineSoftmax) -> bool:
    return s.largest.operands[0] == s.x and _reduces(s.largest, "maximum", -math.inf)


@ONLINE_SOFTMAX.requires("what is divided by is the sum of what is divided")
def _total_is_of_powers(s: OnlineSoftmax) -> bool:
    return _exact(s.added.operands[0]) == s.power and _reduces(s.added, "add", 0.0)


@ONLINE_SOFTMAX.requires("both are along the columns alone")
def _reductions_are_along_columns(s: OnlineSoftmax) -> bool:
    return all(list(integers(op.attributes["dimensions"])) == [s.rank - 1] for op in (s.largest, s.added))


@ONLINE_SOFTMAX.requires("they are for the row that they come from")
def _rows_get_their_own(s: OnlineSoftmax) -> bool:
    return all(_is_back_in_its_row(v, s) for v in (s.peak, s.total))


def _is_back_in_its_row(value: ir.Value, s: OnlineSoftmax) -> bool:
    op, dims = defining_op(value), dims_of(s.x)
    if op is None or op.name not in BROADCASTS or dims_of(value) != dims:
        return False
    is_whole = dims_of(op.operands[0]) == dims[:-1]
    return is_whole and list(integers(op.attributes["broadcast_dimensions"])) == list(range(s.rank - 1))


@ONLINE_SOFTMAX.requires("what the exponential is taken of is made element by element")
def _x_has_no_reduction(s: OnlineSoftmax) -> bool:
    return all(op.name in ELEMENTWISE | BROADCASTS | GENERATORS for op in _makers(s.x))


@ONLINE_SOFTMAX.requires("an element of it is made of the score that stands there")
def _scores_stand_in_place(s: OnlineSoftmax) -> bool:
    of_scores = {s.scores.value}
    makers = _makers(s.x)
    for op in (op.operation for op in s.scores.function.entry_block.operations):
        if op in makers and of_scores.intersection(op.operands):
            if op.name not in ELEMENTWISE:
                return False
            of_scores.update(op.results)
    return s.x in of_scores and all(dims_of(v) == dims_of(s.x) for v in of_scores)


def _makers(value: ir.Value) -> list[ir.Operation]:
    """All ops that a value comes from."""
    pending, found = [value], dict[ir.Operation, None]()
    while pending:
        op = defining_op(pending.pop())
        if op is not None and op not in found:
            found[op] = None
            pending += list(op.operands)
    return list(found)


@ONLINE_SOFTMAX.requires("floats have 16 or 32 bits")
def _floats_are_narrow(s: OnlineSoftmax) -> bool:
    return all(str(element_type_of(v)) in FLOATS for v in (s.scores.value, s.x, s.power, s.peak, s.total))
