# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces the three calls of an attention by one, of a function of kind "attention" that makes them.

A causal mask and the like, made from positions, is made again inside; pieces of rows, as of a product that computes
query, key and value together, are read where the rows lie; and sums that are only read to be rounded are rounded. Where
rows are whole, a second result of the function is scratch for one row of scores, used where a thread gets no memory of
its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shlo_disc.shape_dialect.build import view
from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import fusion_of, row_kernel_of, set_fusion
from shlo_disc.shape_dialect.dialect.problems import Causal, Visible
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block
from shlo_disc.transforms.decisions import Decisions, Pattern
from shlo_disc.transforms.fusion.attention import (
    ATTENTION,
    Attention,
    AttentionSite,
    find_attention,
    is_online,
    is_only_read_by,
    kind,
    readers,
)
from shlo_disc.transforms.fusion.attention_problem import CountedColumns, described
from shlo_disc.transforms.fusion.causal import causal_columns, hidden_columns
from shlo_disc.transforms.fusion.column_ranges import CalledRanges, called_ranges, column_ranges
from shlo_disc.transforms.fusion.masked_values import Scores
from shlo_disc.transforms.fusion.online_softmax import OnlineSoftmax, online_softmax
from shlo_disc.transforms.fusion.online_softmax import Scores as RowScores
from shlo_disc.transforms.fusion.outline_gradient import outline_gradients
from shlo_disc.transforms.fusion.outlined_calls import erase, erase_unused, zeros
from shlo_disc.transforms.fusion.rematerialize import Rematerialized, with_rematerialized
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions
from shlo_disc.transforms.fusion.slices import RowSlice
from shlo_disc.transforms.fusion.visible_columns import visible_columns

ROUNDING: Pattern[Rounding] = Pattern("rounding", "an attention rounds its sums itself")
ROW_SLICE_VIEW: Pattern[SlicedOperand] = Pattern("row-slice-view", "a piece of rows is read where the rows lie")

ROUNDED = frozenset({"bf16"})
"""Element types of results to which the kernel rounds its sums."""


def outline_attentions(module: ir.Module, decisions: Decisions) -> None:
    """Replace the calls of every attention of a fused module by one, in place."""
    functions = SharedFunctions(module)
    names = (f"attention_{number}" for number in itertools.count())
    if not is_online():
        outline_gradients(module, functions, decisions)
    for block in all_blocks(entry_block(module)):
        for op in list(block.operations):
            found = find_attention(op.operation, functions.by_name) if op.operation.name == "func.call" else None
            if found is not None and decisions.take(ATTENTION.name, op, found.choice):
                _outline(module, found, functions, names)
    functions.erase_left()


def _outline(module: ir.Module, found: Attention, shared: SharedFunctions, names: Iterator[str]) -> None:
    functions, name = shared.by_name, next(names)
    calls = (found.scores, found.rows, found.context)
    rounding = _rounding(found)
    last = found.context if rounding is None else rounding
    with found.context.location:
        rows = _row_kernel(module, found, shared, name, last)
        operands = [list(found.scores.operands), rows.operands, list(found.context.operands)]
        function, inputs, slices = _function(module, found, rows, operands, rounding, functions, name)
        function = shared.add(function)
        with ir.InsertionPoint(last):
            new = func.CallOp(function, inputs)
    last.results[0].replace_all_uses_with(new.results[0])
    for call in (*(() if rounding is None else (rounding,)), *reversed(calls)):
        erase(call)
    for call in dict.fromkeys([*rows.inside, *slices]):
        erase_unused(call)


def _function(
    module: ir.Module,
    found: Attention,
    rows: _Rows,
    operands: list[list[ir.Value]],
    rounding: ir.Operation | None,
    functions: dict[str, func.FuncOp],
    name: str,
) -> tuple[func.FuncOp, list[ir.Value], list[ir.Operation]]:
    """The function of an attention, the values that a call of it takes, and the calls that it makes obsolete."""
    inside = {found.scores.results[0], found.rows.results[0]}
    calls = (found.scores, found.rows, found.context)
    result = found.context.results[0] if rounding is None else rounding.results[0]
    scratch = [] if is_online() else [_room_for_a_row(found)]
    read = list(dict.fromkeys(v for values in operands for v in values if root(v) not in inside))
    slices = {v: call for v in read if (call := _row_slice(v, found, operands[1]))}
    inputs = list(dict.fromkeys(slices[v].operands[0] if v in slices else v for v in read))
    inputs += [v for v in rows.ranges if v not in inputs]
    with ir.InsertionPoint(module.body):
        type_ = ir.FunctionType.get([v.type for v in inputs], [result.type, *(tensor_type(*room) for room in scratch)])
        function = func.FuncOp(name, type_, visibility="private")
    block = function.add_entry_block()
    values = dict(zip(inputs, block.arguments, strict=True))
    parts = (functions[callee_of(found.scores)], rows.function, functions[callee_of(found.context)])
    with ir.InsertionPoint(block):
        for v, call in slices.items():
            piece = func.CallOp(functions[callee_of(call)], [values[call.operands[0]]]).results[0]
            values[v] = view(piece, dims_of(v))
        for call, part, own in zip(calls, parts, operands, strict=True):
            arguments = [values[v] if v in values else view(values[root(v)], dims_of(v)) for v in own]
            values[call.results[0]] = func.CallOp(part, arguments).results[0]
        if rounding is not None:
            sums = [view(values[found.context.results[0]], dims_of(rounding.operands[0]))]
            values[result] = func.CallOp(functions[callee_of(rounding)], sums).results[0]
        func.ReturnOp([values[result], *(zeros(*room) for room in scratch)])
    inner = values[found.context.results[0]].owner.operation
    place = AttentionSite(inner, found.second, found.weights, rows.argument, functions)
    counted = rows.counted
    if counted.visible is not None:
        first, end = (inputs.index(v) for v in rows.ranges)
        counted = replace(counted, visible=replace(counted.visible, first=first, end=end))
    set_fusion(function, described(place, rounding is not None, counted, rows.hides))
    return function, inputs, list(slices.values())


# ---- the row kernel -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """The row kernel inside of an attention, and what it reads, of which argument `argument` is the scores.

    inside: the calls of loops that it contains. ranges: which columns each row sees, where a mask says so. hides: the
    weights of rows of nothing but -inf are 0.
    """

    function: func.FuncOp
    operands: list[ir.Value]
    argument: int
    inside: list[ir.Operation]
    counted: CountedColumns
    ranges: tuple[ir.Value, ...]
    hides: bool


def _row_kernel(module: ir.Module, found: Attention, shared: SharedFunctions, name: str, last: ir.Operation) -> _Rows:
    """The row kernel of an attention, among the module's functions. `last`: before which op columns are counted."""
    with ir.InsertionPoint(module.body):
        parts = with_rematerialized(found.rows, shared.by_name, f"{name}_rows")
    scores = _scores(found, parts)
    softmax = online_softmax(RowScores(scores.function, scores.argument)) if is_online() else None
    causal, ranges = _causal(scores, softmax), None
    if causal is None and not is_online():
        parts, ranges = _visible(module, found, shared, parts, last)
        scores = _scores(found, parts)
    if ranges is not None:
        counted = CountedColumns(visible=Visible(0, 0, ranges.magnitude), strides=ranges.strides)
    else:
        counted = CountedColumns(causal)
    rows, what = parts.function, fusion_of(parts.function)
    if not is_online() and (causal is not None or ranges is not None):
        what = replace(row_kernel_of(rows), bounded=True, begins=ranges is not None)
    if rows.name.value in shared.by_name:
        rows = shared.described(rows, what)
    else:
        set_fusion(rows, what)
        rows = shared.add(rows)
    hides = softmax is not None and softmax.hides
    values = () if ranges is None else ranges.values
    return _Rows(rows, parts.operands, scores.argument, parts.inside, counted, values, hides)


def _scores(found: Attention, parts: Rematerialized) -> Scores:
    argument = parts.operands.index(found.rows.operands[found.argument])
    return Scores(parts.function, argument, dims_of(found.scores.results[0]), found.is_matrix)


def _causal(scores: Scores, softmax: OnlineSoftmax | None) -> Causal | None:
    """The columns that a mask hides. Where rows come in pieces, their kernel looks at the scores itself."""
    if not is_online():
        return causal_columns(scores)
    return None if softmax is None else hidden_columns(replace(scores, x=softmax.x))


def _visible(
    module: ir.Module, found: Attention, shared: SharedFunctions, plain: Rematerialized, last: ir.Operation
) -> tuple[Rematerialized, CalledRanges | None]:
    """The row kernel with its masks inside, and a call before `last` that computes which columns they let rows see; or
    the plain kernel, where nothing is hidden for sure."""
    with ir.InsertionPoint(module.body):
        parts = with_rematerialized(found.rows, shared.by_name, shared.unique("masked_rows"), masks=True)
    scores = _scores(found, parts)
    masks = visible_columns(scores) if len(parts.operands) <= policy().attention_operands else None
    with ir.InsertionPoint(module.body):
        ranges = None if masks is None else column_ranges(masks, scores.dims[:-1], shared.unique("visible_columns"))
    unused = parts.function if masks is None or ranges is None else plain.function
    if unused.name.value not in shared.by_name:
        unused.operation.erase()
    if masks is None or ranges is None:
        return plain, None
    return parts, called_ranges(masks, ranges, parts.operands, shared, last)


def _room_for_a_row(found: Attention) -> tuple[Dims, ir.Type]:
    """The type of the scratch for a row of scores, and for one of weights where these are narrower."""
    scores = found.scores.results[0]
    (row,), element = dims_of(scores)[-1:], element_type_of(scores)
    is_same = element_type_of(found.rows.results[0]) == element
    return (row if is_same else row * 2,), element


# ---- sums that are rounded ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rounding:
    """The call that computes sums, one that reads them, and the op that this one consists of."""

    sums: ir.Operation
    reader: ir.Operation
    op: ir.Operation


def _rounding(found: Attention) -> ir.Operation | None:
    """The call that rounds the context, and does nothing else, as part of the attention."""

    def build(sums: ir.Operation) -> Rounding | None:
        reader = next(readers(sums.results[0]), None)
        if reader is None or kind(reader, found.functions) != "loop":
            return None
        op, *others = (op.operation for op in found.functions[callee_of(reader)].entry_block.operations)
        return Rounding(sums, reader, op) if len(others) == 1 and op.name == "stablehlo.convert" else None

    rounding = ROUNDING.match(build, found.context)
    return None if rounding is None else rounding.reader


@ROUNDING.requires("nothing else reads the sums")
def _sums_are_read_once(r: Rounding) -> bool:
    return is_only_read_by(r.sums.results[0], r.reader)


@ROUNDING.requires("the calls stand in one block")
def _rounding_is_in_the_block(r: Rounding) -> bool:
    return r.reader.block == r.sums.block


@ROUNDING.requires("sums of f32 become what the runtime rounds to")
def _runtime_rounds_so(r: Rounding) -> bool:
    sums, rounded = str(element_type_of(r.op.operands[0])), str(element_type_of(r.op.results[0]))
    return sums == "f32" and rounded in ROUNDED


# ---- operands that are pieces of rows -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlicedOperand:
    """An operand that a call cuts out of rows, and what the row kernel of the attention reads."""

    value: ir.Value
    call: ir.Operation
    piece: RowSlice
    read_by_rows: list[ir.Value]


def _row_slice(value: ir.Value, found: Attention, read_by_rows: list[ir.Value]) -> ir.Operation | None:
    """The call of a loop that cuts `value` out of rows, if the attention may read the rows themselves."""

    def build(value: ir.Value) -> SlicedOperand | None:
        call = defining_op(root(value))
        if call is None or kind(call, found.functions) != "loop" or len(call.operands) != 1:
            return None
        piece = RowSlice.of(found.functions[callee_of(call)])
        return None if piece is None else SlicedOperand(value, call, piece, read_by_rows)

    sliced = ROW_SLICE_VIEW.match(build, value)
    return None if sliced is None else sliced.call


@ROW_SLICE_VIEW.requires("no size of the operand lies across the end of a piece")
def _sizes_do_not_cross_the_cut(s: SlicedOperand) -> bool:
    return s.piece.strides(dims_of(s.value)) is not None


@ROW_SLICE_VIEW.requires("the row kernel, which takes no strides, does not read it")
def _row_kernel_does_not_read_it(s: SlicedOperand) -> bool:
    return s.value not in s.read_by_rows
