# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of an op: what is known of them, and what they may be made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .gradients import Returned
from .search import Found, Values

if TYPE_CHECKING:
    from .expressions import Expressions

_STEPS = {
    "base_dilations", "interior_padding", "lhs_dilation", "rhs_dilation", "strides", "window_dilations",
    "window_dimensions", "window_strides",
}  # fmt: skip
"""Attributes by which sizes are divided."""


class OpNumbers:
    """The numbers of an op at a position, and what they may be made of."""

    def __init__(self, expressions: Expressions, op: ir.OpView, position: int):
        self._expressions = expressions
        self._samples = expressions.samples
        self._op = op
        self._position = position
        sources = dict.fromkeys(source for v in op.operands for source in (v, self._samples.origin(v)))
        known = (d for v in sources for n in self._samples.dims.get(v, []) for d in self._known(n))
        self._near = tuple(dict.fromkeys(d for d in known if d.constant is None))
        self._divisors = tuple(self._fixed_numbers())

    def _known(self, number: int) -> list[Expr]:
        return [self._expressions.of(number)] if self._expressions.is_known(number) else []

    def _fixed_numbers(self) -> Iterable[int]:
        """Strides, dilations, windows; of a reshape also the sizes."""
        for name in _STEPS & set(self._samples.attribute_names.get(self._position, [])):
            for number in self._samples.attributes[self._position, name]:
                if self._samples.is_fixed(number):
                    yield self._samples.values[number][0] + (name == "interior_padding")
        if self._op.operation.name == "stablehlo.reshape":
            numbers = [n for v in self._op.results for n in self._samples.dims.get(v, [])]
            yield from (self._samples.values[n][0] for n in numbers if self._samples.is_fixed(n))

    def operand_numbers(self, index: int) -> list[int]:
        """The sizes with which the op uses an operand."""
        value = self._op.operands[index]
        return self._samples.operands.get((self._position, index), self._samples.dims.get(value, []))

    def attribute_numbers(self, name: str) -> list[int]:
        """The numbers of an attribute; none if the op has no such attribute."""
        return self._samples.attributes.get((self._position, name), [])

    def result_numbers(self) -> list[int]:
        """The sizes of the first result."""
        return self._samples.dims.get(self._op.results[0], [])

    def attribute(self, name: str) -> Dims:
        """The expressions of an attribute's numbers, chosen if they were not."""
        return self.choose_all(self.attribute_numbers(name))

    def result(self, axis: int) -> Expr | None:
        """The size of the first result that is known, or is the same in all samples."""
        number = self.result_numbers()[axis]
        if self._expressions.is_known(number):
            return self._expressions.of(number)
        return Expr.const(self._samples.values[number][0]) if self._samples.is_fixed(number) else None

    def choose_all(self, numbers: Sequence[int]) -> Dims:
        """The expressions of numbers, the simplest of those that have none."""
        for number in numbers:
            self._choose(number)
        return tuple(self._expressions.of(number) for number in numbers)

    def choose_results(self, sizes: dict[int, Expr]) -> None:
        """The expressions of the results' sizes: those that are given, by axis, if they fit; else the simplest."""
        for result in self._op.results:
            for axis, number in enumerate(self._samples.dims.get(result, [])):
                self._choose(number, sizes.get(axis))
                if axis in sizes and self._op.operation.name == "stablehlo.slice":
                    self._expressions.compare(number, sizes[axis])

    def _choose(self, number: int, first: Expr | None = None) -> None:
        if self._expressions.is_known(number):
            return
        if first is not None and self._expressions.fits(first, number):
            self._expressions.set(number, first)
            return
        self._expressions.choose(number, self.find(self.values(number), self._samples.is_attribute(number)))

    # What the choice of paddings and of bounds asks (paddings.OpNumbers).

    def values(self, number: int) -> Values:
        return self._samples.values[number]

    def known(self, number: int) -> Expr | None:
        return self._expressions.of(number) if self._expressions.is_known(number) else None

    def origin(self, number: int) -> Expr | None:
        whole = self._samples.uses.get(number)
        return None if whole is None else self.known(whole)

    def evaluate(self, expression: Expr) -> Values | None:
        return self._expressions.evaluate(expression)

    def divisor(self, number: int) -> int:
        return self._expressions.relations.divisor(number)

    def returned(self, number: int) -> Returned | None:
        return self._expressions.relations.returned.get(number)

    def pads_to_strides(self) -> bool:
        return self._expressions.pads_to_strides

    def find(self, values: Values, is_stated: bool = False) -> Found | None:
        return self._expressions.find(values, self._near, self._divisors, is_stated)

    def choose(self, number: int) -> Expr:
        return self.choose_all([number])[0]

    def is_given(self, expression: Expr) -> bool:
        return self._expressions.is_given(expression)

    def give(self, number: int) -> None:
        self._expressions.give(number)

    def contest(self, number: int) -> None:
        self._expressions.contested.add(number)

    def set(self, number: int, expression: Expr) -> None:
        if not self._expressions.is_known(number) and self._expressions.fits(expression, number):
            self._expressions.set(number, expression)


__all__ = ["OpNumbers"]
