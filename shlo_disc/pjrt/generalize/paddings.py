# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding that changes with the sizes, of `pad` and of windows.

Front ends choose it such that the result has a size that they want: that of the operand rounded up to whole strides
(SAME), that of what a gradient belongs to, a multiple of something, a fixed length. So where the result's size has a
simpler expression than the padding, the padding is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from shlo_disc.shape_dialect.dialect.window import dilated
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.data_movement import padded_size
from shlo_disc.shape_dialect.symbolic.expr import Expr, ceildiv, round_up

from .formulas import Sizes, window_axes, window_of
from .gradients import Returned
from .samples import Samples
from .search import Found, Values

_FIXED_SIZE = 2.5
"""Cost of a result of a fixed size: less than a line through two samples, more than a remainder by the stride."""


class Padded(NamedTuple):
    """One axis: `low` and `high` are the numbers of the padding, `result` that of the size of the result.

    extent: the operand with its holes. window, stride: of `pad` one element, and 1.
    may_round: there is padding, or an op that pads nothing in the samples, which no program has for that.
    """

    low: int
    high: int
    result: int
    extent: Expr
    window: Expr
    stride: Expr
    may_round: bool


class OpNumbers(Protocol):
    """The numbers of an op, and what they may be made of."""

    def operand_numbers(self, index: int) -> list[int]:
        """The sizes with which the op uses an operand."""

    def attribute_numbers(self, name: str) -> list[int]:
        """The numbers of an attribute; none if the op has no such attribute."""

    def result_numbers(self) -> list[int]:
        """The sizes of the first result."""

    def values(self, number: int) -> Values:
        """The value of a number in each sample."""

    def known(self, number: int) -> Expr | None:
        """The expression of a number that has one."""

    def divisor(self, number: int) -> int:
        """The divisors of a number at all sizes."""

    def returned(self, number: int) -> Returned | None:
        """The forward op of the gradient whose padding makes a size."""

    def pads_to_strides(self) -> bool:
        """Tells whether the padding of some windows with strides changes with the sizes (`are_strides_padded`)."""

    def origin(self, number: int) -> Expr | None:
        """The size of the value that is used with a size; None of what is no such use, or has no expression."""

    def evaluate(self, expression: Expr) -> Values | None:
        """The value of an expression in each sample."""

    def find(self, values: Values, is_stated: bool = False) -> Found | None:
        """The simplest expression of these values, which an attribute states or not."""

    def choose(self, number: int) -> Expr:
        """The expression of a number, the simplest that fits if none was chosen."""

    def is_given(self, expression: Expr) -> bool:
        """Tells whether an expression is a symbol that is a size of no argument."""

    def give(self, number: int) -> None:
        """Make a number that has no expression such a symbol, if that can be, one that has its values if there is."""

    def contest(self, number: int) -> None:
        """Note that the size with which a value is used need not be that of the value, as it is in the samples."""

    def set(self, number: int, expression: Expr) -> None:
        """Decide on an expression, which has the values of the number, unless there is one."""


def choose_padding(numbers: OpNumbers, axis: Padded) -> None:
    """Choose expressions of a padding that is not the same in all samples, and of the result's size with it.

    One that is the same may have been to a multiple, of which the samples are all as much short, to the size of what a
    gradient belongs to, or to whole strides. Both ends with the same padding have one expression, and its cost once.
    """
    low, high = numbers.values(axis.low), numbers.values(axis.high)
    varying = [values for values in dict.fromkeys((low, high)) if len(set(values)) > 1]
    result = _rounded(numbers, axis) or _returned(numbers, axis) or _whole_strides(numbers, axis, low, high)
    if not varying and result is None:
        return
    result = result or _result(numbers, axis)
    if result is None:
        return
    total = _total(numbers, axis, result.expression, tuple(map(sum, zip(low, high, strict=True))))
    itself = [numbers.find(values, True) for values in varying]
    if total is None or (varying and sum(found.cost if found else 100 for found in itself) < result.cost):
        return
    numbers.set(axis.result, result.expression)
    first = _first_of_gradient(numbers, axis, low)
    if first is None:
        first = _first(numbers, total, axis, low, high)
    if first is not None:
        numbers.set(axis.low, first)
        numbers.set(axis.high, total - first)


def _first_of_gradient(numbers: OpNumbers, axis: Padded, low: Values) -> Expr | None:
    """The part of a window that the padding at the beginning of a gradient's forward op leaves."""
    returned = numbers.returned(axis.result)
    known = None if returned is None or returned.low is None else numbers.known(returned.low)
    if returned is None or returned.low is None or known is None or known.constant is not None:
        return None
    window = {a + b for a, b in zip(low, numbers.values(returned.low), strict=True)}
    return window.pop() - known if len(window) == 1 else None


def _first(numbers: OpNumbers, total: Expr, axis: Padded, low: Values, high: Values) -> Expr | None:
    """The padding at the beginning: a half, what is fixed, what the end leaves, the simplest that fits, or a symbol.

    A half of what windows with strides have, or of what changes at the beginning.
    """
    halves = (total // 2, total - total // 2) if axis.stride.constant != 1 or len(set(low)) > 1 else ()
    for half in halves:
        if numbers.evaluate(half) == low:
            return half
    if len(set(low)) == 1:
        return Expr.const(low[0])
    if len(set(high)) == 1:
        return total - high[0]
    found = numbers.find(low, True)
    if found is None:
        numbers.give(axis.low)
    return found.expression if found else numbers.known(axis.low)


def _rounded(numbers: OpNumbers, axis: Padded) -> Found | None:
    """The operand's size rounded up to what the result is a multiple of."""
    is_free = axis.may_round and axis.stride.constant == 1 and numbers.known(axis.result) is None
    divisor = numbers.divisor(axis.result) if is_free else 1
    rounded = round_up(axis.extent, divisor) if divisor > 1 else None
    is_so = rounded is not None and numbers.evaluate(rounded) == numbers.values(axis.result)
    return Found(0, rounded) if is_so and rounded is not None else None


def _returned(numbers: OpNumbers, axis: Padded) -> Found | None:
    """The size of what a gradient belongs to, and what a window takes more."""
    returned = numbers.returned(axis.result)
    size = None if returned is None else numbers.known(returned.size)
    if returned is None or size is None or size.constant is not None:
        return None
    return Found(0, size + returned.more)


def _whole_strides(numbers: OpNumbers, axis: Padded, low: Values, high: Values) -> Found | None:
    """As many windows as there are strides, where the padding would be this one, and that of other windows changes."""
    is_free = axis.may_round and axis.extent.constant is None and numbers.known(axis.result) is None
    if not is_free or axis.stride.constant in (None, 1) or not numbers.pads_to_strides():
        return None
    count = ceildiv(axis.extent, axis.stride)
    total = Expr.maximum((count - 1) * axis.stride + axis.window - axis.extent, 0)
    is_so = numbers.evaluate(count) == numbers.values(axis.result) and (
        numbers.evaluate(total) == tuple(map(sum, zip(low, high, strict=True)))
    )
    is_half = low in (numbers.evaluate(total // 2), numbers.evaluate(total - total // 2))
    return Found(0, count) if is_so and is_half else None


def _result(numbers: OpNumbers, axis: Padded) -> Found | None:
    """The result's size: the one that is known, a whole number of strides, or the simplest that fits."""
    known = numbers.known(axis.result)
    if known is not None:
        return Found(0, known)
    values = numbers.values(axis.result)
    whole = ceildiv(axis.extent, axis.stride)
    if axis.stride.constant != 1 and numbers.evaluate(whole) == values:
        return Found(0, whole)
    if len(set(values)) == 1:
        return Found(_FIXED_SIZE, Expr.const(values[0]))
    return numbers.find(values)


def _total(numbers: OpNumbers, axis: Padded, result: Expr, total: Values) -> Expr | None:
    """The padding of both sides that just makes the result, and what the last stride leaves over if it is the same."""
    least = (result - 1) * axis.stride + axis.window - axis.extent
    known = numbers.evaluate(least)
    if known is None:
        return None
    rest = {a - b for a, b in zip(total, known, strict=True)}
    overlap = (axis.window - axis.stride).constant  # if there are gaps, `least` may be negative
    if len(rest) == 1 and (rest != {0} or overlap is None or overlap >= 0):
        return least + rest.pop()
    clamped = Expr.maximum(least, 0)
    return clamped if numbers.evaluate(clamped) == total else None


def _pad(op: ir.OpView, sizes: Sizes, numbers: OpNumbers) -> Iterator[Padded]:
    columns = (numbers.attribute_numbers(name) for name in ("edge_padding_low", "edge_padding_high"))
    one, zero = Expr.const(1), Expr.const(0)
    lows, highs = columns
    is_idle = not any(_is_padded(numbers, low, high) for low, high in zip(lows, highs, strict=True))
    rows = zip(
        lows, highs, numbers.result_numbers(), sizes.operands[0], sizes.attribute("interior_padding"), strict=True
    )
    for low, high, result, size, interior in rows:
        may_round = is_idle or _is_padded(numbers, low, high)
        yield Padded(low, high, result, padded_size(size, zero, zero, interior), one, one, may_round)


def _is_padded(numbers: OpNumbers, low: int, high: int) -> bool:
    """Tells whether there is padding at an end of an axis in some sample."""
    return any((*numbers.values(low), *numbers.values(high)))


def _windows(op: ir.OpView, sizes: Sizes, numbers: OpNumbers) -> Iterator[Padded]:
    padding = numbers.attribute_numbers("padding")
    if not padding:
        return
    space, window = window_of(op, sizes, has_padding=False)
    is_scatter = op.operation.name == "stablehlo.select_and_scatter"  # from a result of a window's to its operand
    counts = numbers.operand_numbers(1) if is_scatter else numbers.result_numbers()
    result = [counts[axis] for axis in window_axes(op, len(space))]
    extents = [dilated(d, k, sizes.facts) for d, k in zip(space, window.base_dilation, strict=True)]
    windows = [dilated(d, k, sizes.facts) for d, k in zip(window.size, window.dilation, strict=True)]
    lows, highs = padding[::2], padding[1::2]
    may_round = [_is_padded(numbers, low, high) for low, high in zip(lows, highs, strict=True)]
    yield from map(Padded, lows, highs, result, extents, windows, window.stride, may_round)


def are_strides_padded(samples: Samples) -> bool:
    """Tells whether a padding of windows with strides changes: to whole strides, then, as others' may be, too."""
    for position in samples.attribute_names:
        strides, padding = (samples.attributes.get((position, name), []) for name in ("window_strides", "padding"))
        for stride, *pair in zip(strides, padding[::2], padding[1::2], strict=False):
            if set(samples.values[stride]) != {1} and not all(map(samples.is_fixed, pair)):
                return True
    return False


PADDED: dict[str, Callable[[ir.OpView, Sizes, OpNumbers], Iterable[Padded]]] = {
    "stablehlo.convolution": _windows,
    "stablehlo.pad": _pad,
    "stablehlo.reduce_window": _windows,
    "stablehlo.select_and_scatter": _windows,
}
"""The axes of ops that have padding."""

__all__ = ["PADDED", "OpNumbers", "Padded", "are_strides_padded", "choose_padding"]
