# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that count from 0 up to a size, as scans do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.nested_blocks import nested_blocks, symbols_read_in
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import constant_of, terminator_of
from shlo_disc.transforms.decisions import Pattern

Affine = tuple[int, Expr]
"""`factor * counter + offset`."""

ZERO: Affine = (0, Expr.const(0))
STEP: Affine = (1, Expr.const(1))

WIDE = frozenset({"i32", "i64", "ui32", "ui64"})
"""Integers that hold sizes and places: those fit 31 bits."""

_CONVERTIBLE = frozenset({"i32", "i64"})
"""Integers that hold differences of places, too."""

_LARGE = 1 << 30


class Count(NamedTuple):
    """The position of the counter among the carried values, and the number of iterations."""

    position: int
    trip: Expr


@dataclass
class _Counted:
    """A loop that goes on by a comparison of the carried value at `position` with a bound that the sizes determine.

    `start` and `following` are None where they are not known: the initial value from the sizes, the next value from the
    sizes and the present one. `varying` are the symbols that each iteration reads from data.
    """

    position: int
    test: ir.Operation
    start: Affine | None
    following: Affine | None
    bound: Expr
    varying: set[str]


COUNTED_LOOP: Pattern[_Counted] = Pattern("counted-loop", "the number of iterations is known from the sizes")


@COUNTED_LOOP.requires("the loop goes on while the counter is less than the bound")
def _goes_up_to_the_bound(found: _Counted) -> bool:
    return "LT" in str(found.test.attributes["comparison_direction"])


@COUNTED_LOOP.requires("the counter starts at 0, in an integer of at least 32 bits, which holds every size")
def _starts_at_zero(found: _Counted) -> bool:
    return found.start == ZERO


@COUNTED_LOOP.requires("each iteration adds 1 to the counter")
def _counts_by_one(found: _Counted) -> bool:
    return found.following == STEP


@COUNTED_LOOP.requires("the bound is the same in every iteration")
def _has_one_bound(found: _Counted) -> bool:
    return found.varying.isdisjoint(found.bound.symbols())


def _counted(loop: ir.OpView) -> _Counted | None:
    condition, body = nested_blocks(loop)
    test = _defining(terminator_of(condition).operands[0])
    arguments = list(condition.arguments)
    if test is None or test.name != "stablehlo.compare" or test.operands[0] not in arguments:
        return None
    position = arguments.index(test.operands[0])
    bound = affine(test.operands[1], None)
    if bound is None:
        return None
    following = affine(terminator_of(body).operands[position], body.arguments[position])
    start = affine(loop.operands[position], None)
    return _Counted(position, test, start, following, bound[1], symbols_read_in(loop))


def count_of(loop: ir.OpView) -> Count | None:
    """The counter and the number of iterations of a loop, when they are known from the sizes.

    The number of a loop that does not run may be negative.
    """
    found = COUNTED_LOOP.match(_counted, loop)
    return None if found is None else Count(found.position, found.bound)


def affine(value: ir.Value, counter: ir.Value | None) -> Affine | None:
    """An integer scalar in terms of a counter; None when it is anything else. Sizes and places fit 31 bits."""
    return _affine(value, counter, {})


def _affine(value: ir.Value, counter: ir.Value | None, known: dict[ir.Value, Affine | None]) -> Affine | None:
    """`affine` of a value, or what is `known` of it: a value may be read along as many ways as there are subsets."""
    if value not in known:
        known[value] = _computed(value, counter, known)
    return known[value]


def _computed(value: ir.Value, counter: ir.Value | None, known: dict[ir.Value, Affine | None]) -> Affine | None:
    """`affine` of a value by that of its operands."""
    if dims_of(value) or str(element_type_of(value)) not in WIDE:
        return None
    if counter is not None and value == counter:
        return 1, Expr.const(0)
    op = _defining(value)
    if op is None:
        return None
    constant = constant_of(value)
    if constant is not None:
        return 0, Expr.const(int(ir.DenseElementsAttr(constant.attributes["value"]).get_splat_value().value))
    if op.name == "disc.shape":
        return 0, dims_of_attr(op.attributes["dims"])[0]
    if op.name == "stablehlo.convert":
        return _converted(op, counter, known)
    if op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = (_affine(v, counter, known) for v in op.operands)
    if left is None or right is None:
        return None
    sign = 1 if op.name == "stablehlo.add" else -1
    return left[0] + sign * right[0], left[1] + sign * right[1]


def _converted(op: ir.Operation, counter: ir.Value | None, known: dict[ir.Value, Affine | None]) -> Affine | None:
    """A convert between integers that both hold the number, as it has no large factors."""
    types = {str(element_type_of(v)) for v in (op.operands[0], op.results[0])}
    source = _affine(op.operands[0], counter, known) if types <= _CONVERTIBLE else None
    if source is None:
        return None
    factors = [source[0], *(factor for factor, _ in source[1].terms)]
    return source if all(abs(factor) < _LARGE for factor in factors) else None


def _defining(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
