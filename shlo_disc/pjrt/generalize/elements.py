# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of constants: numbers, sizes, or arguments of the symbolic program."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

from .samples import NotGeneralError

if TYPE_CHECKING:
    from .expressions import Expressions

_LARGEST_OFFSET = 8  # of an integer constant from a size


def choose_elements(expressions: Expressions, position: int) -> bool:
    """Choose expressions of a constant's elements: the same in all programs, or a size. False if it is an argument.

    Raises NotGeneralError for an argument that cannot be.
    """
    samples = expressions.samples
    numbers = samples.elements[position]
    if position in samples.functions:
        return False
    if all(samples.is_fixed(n) for n in numbers):
        for number in numbers:
            count = _trip_count(expressions, position, number)
            expressions.state(number, Expr.const(samples.values[number][0]) if count is None else count)
        return True
    element = ir.RankedTensorType(samples.operations[position].results[0].type).element_type
    if position in samples.splats and str(element) in ("i32", "i64"):
        found = _integer(expressions, numbers[0])
        if found is not None:
            expressions.state(numbers[0], found)
            return True
    if isinstance(element, ir.IntegerType) and element.width in (2, 4):
        raise NotGeneralError("a constant of 2 or 4 bits changes", samples.place(numbers[0]))
    return False


def _trip_count(expressions: Expressions, position: int, number: int) -> Expr | None:
    """The first size of what a loop goes through, where the loop's condition has an integer that is as large.

    It is the same in the samples, but its expression is no number.
    """
    samples = expressions.samples
    constant = samples.operations[position]
    owner = constant.operation.parent
    if owner is None or owner.name != "stablehlo.while" or constant.operation.block != owner.regions[0].blocks[0]:
        return None
    sizes = (expressions.of(dims[0]) for v in owner.operands if (dims := samples.dims.get(v)))
    return next((e for e in sizes if e.constant is None and expressions.fits(e, number)), None)


def _integer(expressions: Expressions, number: int) -> Expr | None:
    """A size, a size and a little, or a product of two."""
    bases: Sequence[Expr] = expressions.bases
    nearby = (e + c for e in bases for c in range(-_LARGEST_OFFSET, _LARGEST_OFFSET + 1))
    products = (e * f for e, f in combinations_with_replacement(bases, 2))
    return next((e for e in (*bases, *nearby, *products) if expressions.fits(e, number)), None)


__all__ = ["choose_elements"]
