# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An outlined attention as a problem: sizes and strides of its two products, over as few loops as can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.shape_dialect.dialect import fusion
from shlo_disc.shape_dialect.dialect.problems import AttentionAxis, AttentionProblem, Causal, Operand, Visible
from shlo_disc.shape_dialect.dialect.records import FunctionName
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.fusion.attention import Attention, AttentionSite, Functions, is_online
from shlo_disc.transforms.fusion.matrix_product import strides_of
from shlo_disc.transforms.fusion.slices import RowSlice

_ONE, _ZERO = Expr.const(1), Expr.const(0)
_UNIT = AttentionAxis(_ONE, _ZERO, _ZERO, _ZERO, _ZERO)


@dataclass(frozen=True)
class CountedColumns:
    """The columns of an attention's rows that count: those up to a diagonal, or those that a mask lets rows see.

    strides: for each axis of rows of the scores, that in what says which columns rows see.
    """

    causal: Causal | None = None
    visible: Visible | None = None
    strides: tuple[Expr, ...] = ()


def described(place: AttentionSite, rounds: bool, counted: CountedColumns, hides: bool) -> fusion.Attention:
    """The attribute of a function with the calls of an attention at `place`, whose operands are its arguments.

    hides: the weights of rows of nothing but -inf are 0.
    """
    found = Attention.at(place)
    if found is None:
        raise CompilerError("fuse: what was outlined as an attention is none")
    arguments = list(found.context.block.arguments)
    row_operands = tuple(-1 if i == found.argument else arguments.index(v) for i, v in enumerate(found.rows.operands))
    problem = _Strides(found, place.functions, arguments).problem(rounds, counted)
    rows = FunctionName(callee_of(found.rows))
    return fusion.Attention(rows=rows, row_operands=row_operands, problem=problem, online=is_online(), hides=hides)


class _Strides:
    """The operands of an attention: where they are, and their strides."""

    def __init__(self, found: Attention, functions: Functions, arguments: Sequence[ir.Value]):
        self.found = found
        query, key, _, value = found.operands
        self.query, self.value = query, value
        sources = [_source(v, functions) for v in (query, key, value)]
        self.operands = [Operand(arguments.index(argument), start) for argument, start, _ in sources]
        self.of_query, self.of_key, self.of_value = (strides for _, _, strides in sources)
        self.of_result = strides_of(dims_of(found.context.results[0]))
        self.query_side, self.key_side, self.value_side = 1 - found.key, found.key, 1 - found.weights

    def problem(self, rounds: bool, counted: CountedColumns) -> AttentionProblem:
        """All sizes and strides. The last row axis stays alone where a mask counts its rows."""
        found, (*_, column) = self.found, self.found.first.axes
        batch, last = self._loops(counted)
        width, across, along = self._width()
        depth = found.first.inner[self.query_side]
        query, key, value = self.operands
        return AttentionProblem(
            element=str(element_type_of(self.query)),
            query=query,
            key=key,
            value=value,
            batch=tuple(batch),
            rows=last,
            columns=dims_of(found.scores.results[0])[-1],
            depth=dims_of(self.query)[depth],
            width=width,
            query_depth=self.of_query[depth],
            key_column=_at(self.of_key, column[self.key_side]),
            key_depth=self.of_key[found.first.inner[self.key_side]],
            value_column=self.of_value[found.second.inner[self.value_side]],
            value_width=_at(self.of_value, across),
            result_width=_at(self.of_result, along),
            rounds=rounds,
            causal=counted.causal,
            visible=counted.visible,
        )

    def _loops(self, counted: CountedColumns) -> tuple[list[AttentionAxis], AttentionAxis]:
        """The loops outside, and that over the rows of one matrix, along which neither key nor value goes."""
        dims = dims_of(self.found.scores.results[0])
        places = {axes[self.found.weights]: (axes[self.value_side], i) for i, axes in enumerate(self.found.second.axes)}
        rows = []
        for i, axes in enumerate(self.found.first.axes[:-1]):
            in_value, in_result = places[i]
            strides = (_at(self.of_query, axes[self.query_side]), _at(self.of_key, axes[self.key_side]))
            visible = counted.strides[i] if counted.strides else _ZERO
            axis = AttentionAxis(dims[i], *strides, _at(self.of_value, in_value), self.of_result[in_result], visible)
            if axis.size.constant != 1:
                rows.append(axis)
        rows = [*_merged(rows[:-1]), rows[-1]] if counted.causal is not None else _merged(rows)
        *batch, last = rows or [_UNIT]
        return (batch, last) if last.key == _ZERO and last.value == _ZERO else ([*batch, last], _UNIT)

    def _width(self) -> tuple[Expr, int | None, int | None]:
        """The size of the result's rows and its axes in value and result."""
        for i, axes in enumerate(self.found.second.axes):
            if axes[self.found.weights] is None:
                return dims_of(self.value)[axes[self.value_side] or 0], axes[self.value_side], i
        return _ONE, None, None


def _source(operand: ir.Value, functions: Functions) -> tuple[ir.Value, int, list[Expr]]:
    """The source of a product's operand: the function's argument, its first element there, and the strides."""
    call = defining_op(root(operand))
    if call is None:
        return root(operand), 0, strides_of(dims_of(operand))
    piece = RowSlice.of(functions[callee_of(call)])
    strides = None if piece is None else piece.strides(dims_of(operand))
    if piece is None or strides is None:
        raise CompilerError("fuse: an operand of an attention is neither an argument nor a piece of its rows")
    return call.operands[0], piece.start, strides


def _at(strides: list[Expr], axis: int | None) -> Expr:
    return _ZERO if axis is None else strides[axis]


def _merged(rows: list[AttentionAxis]) -> list[AttentionAxis]:
    """Neighbouring row axes as one where all strides allow it: heads that share a key are rows of one product."""
    merged: list[AttentionAxis] = []
    for row in rows:
        last = merged[-1] if merged else None
        if last is not None and all(a == b * row.size for a, b in zip(_strides(last), _strides(row), strict=True)):
            merged[-1] = AttentionAxis(last.size * row.size, *_strides(row))
        else:
            merged.append(row)
    return merged


def _strides(axis: AttentionAxis) -> tuple[Expr, ...]:
    return axis.query, axis.key, axis.value, axis.result, axis.visible
