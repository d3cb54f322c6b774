# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts of whole pieces of an attention's rows, in which all columns are there and a causal mask hides none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shlo_disc.lowering.elements import Positions
from shlo_disc.lowering.positions import Position
from shlo_disc.shape_dialect.dialect.names import SEEN
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import arith, func, ir
from shlo_disc.shape_dialect.ops import BROADCASTS
from shlo_disc.shape_dialect.ops.access import defining_op, scalar_number

_LEAST_FACTOR = 2.0**-20
"""Factors between this and its inverse are left to the softmax."""

Axes = Sequence[int]
"""For each axis of a value, the axis of the scores that it is."""


@dataclass(frozen=True)
class Scaled:
    """A value of a row kernel, and the positive number that it is multiplied by to be what the softmax is of."""

    value: ir.Value
    factor: float


@dataclass(frozen=True)
class WholePieces:
    """masks: the comparisons of a row kernel that are a causal mask, with the axes of rows and of columns that they
    compare, and what they are in whole pieces."""

    masks: dict[ir.Value, tuple[int, int, int]]

    @staticmethod
    def of(rows: func.FuncOp) -> WholePieces:
        """The facts that the ops of a row kernel state."""
        masks = dict[ir.Value, tuple[int, int, int]]()
        for op in (op.operation for op in rows.entry_block.operations if SEEN in op.attributes):
            row, column, truth = ir.DenseI64ArrayAttr(op.attributes[SEEN])
            masks[op.results[0]] = (row, column, truth)
        return WholePieces(masks)

    def elements(self, row: Position, column: Position) -> dict[ir.Value, Callable[[Positions], ir.Value | None]]:
        """The comparisons' elements for a row and a column of a whole piece; None for those of other positions."""

        def at(mask: tuple[int, int, int], positions: Positions) -> ir.Value | None:
            of_row, of_column, truth = mask
            is_here = positions[of_row] == row and positions[of_column] == column
            return arith.constant(ir.IntegerType.get_signless(1), truth) if is_here else None

        return {value: functools.partial(at, mask) for value, mask in self.masks.items()}

    def scaled(self, x: ir.Value) -> Scaled:
        """The operand of a softmax, without the selects that are decided, and without a multiplication of f32 by a
        number."""
        rank, maker = len(dims_of(x)), defining_op(x)
        while maker is not None and maker.name == "stablehlo.select":
            truth = self._truth(maker.operands[0], range(rank), (rank - 2, rank - 1))
            if truth is None:
                break
            x = maker.operands[1 if truth else 2]
            maker = defining_op(x)
        if maker is not None and maker.name == "stablehlo.multiply" and str(element_type_of(x)) == "f32":
            for value, other in (maker.operands, reversed(list(maker.operands))):
                factor = _number(other)
                if factor is not None and _LEAST_FACTOR <= factor <= 1 / _LEAST_FACTOR:
                    return Scaled(value, factor)
        return Scaled(x, 1.0)

    def _truth(self, value: ir.Value, axes: Axes, place: tuple[int, int]) -> bool | None:
        """A boolean, where it is known. axes: those of the value. place: the scores' axes of rows and of columns."""
        number, maker = _number(value), defining_op(value)
        if number is not None or maker is None:
            return None if number is None else bool(number)
        if value in self.masks:
            row, column, truth = self.masks[value]
            return bool(truth) if (axes[row], axes[column]) == place else None
        if maker.name in BROADCASTS:
            into = ir.DenseI64ArrayAttr(maker.attributes["broadcast_dimensions"])
            return self._truth(maker.operands[0], [axes[axis] for axis in into], place)
        known = [self._truth(v, axes, place) for v in maker.operands] if maker.name in _LOGIC else []
        return _LOGIC[maker.name](*known) if known else None


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if False in (a, b) else None if None in (a, b) else True


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _or(a: bool | None, b: bool | None) -> bool | None:
    return _not(_and(_not(a), _not(b)))


def _select(choice: bool | None, yes: bool | None, no: bool | None) -> bool | None:
    return None if choice is None else yes if choice else no


_LOGIC: dict[str, Callable[..., bool | None]] = {
    "stablehlo.and": _and,
    "stablehlo.or": _or,
    "stablehlo.not": _not,
    "stablehlo.select": _select,
}


def _number(value: ir.Value) -> float | None:
    """The number that all elements of a constant are."""
    op = defining_op(value)
    while op is not None and op.name in BROADCASTS:
        op = defining_op(op.operands[0])
    return None if op is None else scalar_number(op)
