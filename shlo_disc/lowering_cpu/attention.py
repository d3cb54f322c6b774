# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: what the runtime's `attention` has to know of the two products and of the row kernel between them.

The scores of some rows at a time are in memory of the thread that works on them: the row kernel, an ordinary one, gets
addresses such that its rows lie there.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.element_types import element_of
from shlo_disc.mlir import func, ir
from shlo_disc.shape_dialect.expr import Expr
from shlo_disc.shape_dialect.types import dims_of
from shlo_disc.transforms.fusion.access import defining_op
from shlo_disc.transforms.fusion.attention import MOST_ROW_AXES, Attention, Functions, Place
from shlo_disc.transforms.fusion.causal import CAUSAL, Causal
from shlo_disc.transforms.fusion.matrix_product import strides_of
from shlo_disc.transforms.fusion.outline_attention import ATTENTION_PLACES
from shlo_disc.transforms.fusion.slices import RowSlice
from shlo_disc.transforms.views import root

_ONE, _ZERO = Expr.const(1), Expr.const(0)


@dataclass(frozen=True)
class AttentionProblem:
    """One call of the runtime's `attention`.

    `words` are the fields of `DiscAttention` from its batch up to its pointers; `query`, `key` and `value` are operand
    numbers of the fusion, and so are `rows_operands` of the row kernel's operands, None for the scores. `causal` are
    the last words: offset, reach and magnitude of a mask.
    """

    element: str
    words: tuple[Expr, ...]
    query: int
    key: int
    value: int
    rows: func.FuncOp
    rows_operands: tuple[int | None, ...]
    causal: tuple[Expr, Expr, Expr]


@dataclass(frozen=True)
class Source:
    """Where an operand of a product is: the fusion's argument, its first element there, and the strides."""

    value: ir.Value
    start: int
    strides: list[Expr]

    @staticmethod
    def of(operand: ir.Value, functions: Functions) -> Source:
        """Of an argument, or of a view of what is cut out of one."""
        call = defining_op(root(operand))
        if call is None:
            return Source(operand, 0, strides_of(dims_of(operand)))
        piece = RowSlice.of(functions[ir.FlatSymbolRefAttr(call.attributes["callee"]).value])
        strides = None if piece is None else piece.strides(dims_of(operand))
        if piece is None or strides is None:
            raise CompilerError("lower: an operand of an attention is neither an argument nor a piece of its rows")
        return Source(call.operands[0], piece.start, strides)


def attention_problem(fusion: func.FuncOp, functions: Functions) -> AttentionProblem:
    """The problem that is a fusion of kind "attention"."""
    calls = [op.operation for op in fusion.entry_block.operations if op.operation.name == "func.call"]
    weights, argument, rounds = ir.DenseI64ArrayAttr(fusion.attributes[ATTENTION_PLACES])
    found = Attention.at(Place(calls[-2 if rounds else -1], weights, argument, functions))
    if found is None:
        raise CompilerError(f"lower: {fusion.name.value} is no attention")
    arguments = list(fusion.entry_block.arguments)
    query, key, _, value = found.operands
    element = element_of(query.type).name
    others = [None if i == found.argument else arguments.index(v) for i, v in enumerate(found.rows.operands)]
    is_causal = CAUSAL in fusion.attributes
    words = _layout(found, functions, (query, key, value), is_causal)
    sources = [Source.of(v, functions) for v in (query, key, value)]
    words += [*(Expr.const(s.start) for s in sources), Expr.const(rounds)]
    of_query, of_key, of_value = (arguments.index(s.value) for s in sources)
    causal = (_ZERO, _ZERO, _ZERO)
    if is_causal:
        mask = Causal.of(fusion.attributes[CAUSAL])
        causal = (mask.offset, mask.reach, Expr.const(mask.magnitude))
    return AttentionProblem(
        element, tuple(words), of_query, of_key, of_value, found.row_function, tuple(others), causal
    )


def _layout(
    found: Attention, functions: Functions, operands: tuple[ir.Value, ir.Value, ir.Value], is_causal: bool
) -> list[Expr]:
    """The sizes and strides: batch sizes, the matrices' sizes, and strides of query, key, value and result.

    The last row axis stays alone where a mask counts its rows.
    """
    dims = dims_of(found.scores.results[0])
    query, _, value = operands
    of_query, of_key, of_value = (Source.of(v, functions).strides for v in operands)
    of_result = strides_of(dims_of(found.context.results[0]))
    q, k, v = 1 - found.key, found.key, 1 - found.weights
    places = {axes[found.weights]: (axes[v], i) for i, axes in enumerate(found.second.axes)}
    rows: list[tuple[Expr, ...]] = []
    for i, axes in enumerate(found.first.axes[:-1]):
        in_value, in_result = places[i]
        row = (_at(of_query, axes[q]), _at(of_key, axes[k]), _at(of_value, in_value), of_result[in_result])
        if dims[i].constant != 1:
            rows.append((dims[i], *row))
    rows = [*_merged(rows[:-1]), rows[-1]] if is_causal else _merged(rows)
    *batch, last = rows or [(_ONE, _ZERO, _ZERO, _ZERO, _ZERO)]
    if last[2] != _ZERO or last[3] != _ZERO:
        batch, last = [*batch, last], (_ONE, _ZERO, _ZERO, _ZERO, _ZERO)
    padding = MOST_ROW_AXES - len(batch)
    words = [Expr.const(len(batch))]
    for column, fill in enumerate((_ONE, _ZERO, _ZERO, _ZERO, _ZERO)):
        words += [axis[column] for axis in batch] + [fill] * padding
    width, across, along = _width(found, value, v)
    words += [last[0], dims[-1], dims_of(query)[found.first.inner[q]], width]
    words += [last[1], of_query[found.first.inner[q]]]
    words += [_at(of_key, found.first.axes[-1][k]), of_key[found.first.inner[k]]]
    words += [of_value[found.second.inner[v]], _at(of_value, across), last[4], _at(of_result, along)]
    return words


def _at(strides: list[Expr], axis: int | None) -> Expr:
    return _ZERO if axis is None else strides[axis]


def _width(found: Attention, value: ir.Value, side: int) -> tuple[Expr, int | None, int | None]:
    """The size of the result's rows and its axes in value and result."""
    for i, axes in enumerate(found.second.axes):
        if axes[found.weights] is None:
            return dims_of(value)[axes[side] or 0], axes[side], i
    return _ONE, None, None


def _merged(rows: list[tuple[Expr, ...]]) -> list[tuple[Expr, ...]]:
    """Neighbouring row axes as one where all strides allow it: heads that share a key are rows of one product."""
    merged: list[tuple[Expr, ...]] = []
    for row in rows:
        size, strides = row[0], row[1:]
        last = merged[-1] if merged else None
        if last is not None and all(a == b * size for a, b in zip(last[1:], strides, strict=True)):
            merged[-1] = (last[0] * size, *strides)
        else:
            merged.append(row)
    return merged
