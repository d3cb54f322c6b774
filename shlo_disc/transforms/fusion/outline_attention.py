# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces the three calls of an attention by one, of a function of kind "attention" that makes them.

A causal mask and the like, made from positions, is made again inside; pieces of rows, as of a product that computes
query, key and value together, are read where the rows lie; and sums that are only read to be rounded are rounded. Where
rows are whole, a second result of the function is scratch for one row of scores, used where a thread gets no memory of
its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from shlo_disc.shape_dialect.build import broadcast, view
from shlo_disc.shape_dialect.dialect.fusion import fusion_of, row_kernel_of, set_fusion
from shlo_disc.shape_dialect.dialect.problems import Causal
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
from shlo_disc.transforms.fusion.attention_problem import described
from shlo_disc.transforms.fusion.causal import causal_columns, hidden_columns
from shlo_disc.transforms.fusion.masked_values import Scores
from shlo_disc.transforms.fusion.online_softmax import OnlineSoftmax, online_softmax
from shlo_disc.transforms.fusion.online_softmax import Scores as RowScores
from shlo_disc.transforms.fusion.rematerialize import generator_of, with_rematerialized
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions
from shlo_disc.transforms.fusion.slices import RowSlice

ROUNDING: Pattern[Rounding] = Pattern("rounding", "an attention rounds its sums itself")
ROW_SLICE_VIEW: Pattern[SlicedOperand] = Pattern("row-slice-view", "a piece of rows is read where the rows lie")

ROUNDED = frozenset({"bf16"})
"""Element types of results to which the kernel rounds its sums."""


def outline_attentions(module: ir.Module, decisions: Decisions) -> None:
    """Replace the calls of every attention of a fused module by one, in place."""
    functions = SharedFunctions(module)
    names = (f"attention_{number}" for number in itertools.count())
    for block in all_blocks(entry_block(module)):
        for op in list(block.operations):
            found = find_attention(op.operation, functions.by_name) if op.operation.name == "func.call" else None
            if found is not None and decisions.take(ATTENTION.name, op):
                _outline(module, found, functions, next(names))
    functions.erase_left()


def _outline(module: ir.Module, found: Attention, shared: SharedFunctions, name: str) -> None:
    functions = shared.by_name
    inside = {found.scores.results[0], found.rows.results[0]}
    calls = (found.scores, found.rows, found.context)
    rounding = _rounding(found)
    last = found.context if rounding is None else rounding
    result = last.results[0]
    scratch = [] if is_online() else [_room_for_a_row(found)]
    with found.context.location:
        with ir.InsertionPoint(module.body):
            rows, kept = with_rematerialized(found.rows, functions, f"{name}_rows")
        argument = kept.index(found.argument)
        operands = [list(found.scores.operands), [found.rows.operands[i] for i in kept], list(found.context.operands)]
        read = list(dict.fromkeys(v for values in operands for v in values if root(v) not in inside))
        slices = {v: call for v in read if (call := _row_slice(v, found, operands[1]))}
        inputs = list(dict.fromkeys(slices[v].operands[0] if v in slices else v for v in read))
        with ir.InsertionPoint(module.body):
            type_ = ir.FunctionType.get(
                [v.type for v in inputs], [result.type, *(tensor_type(*room) for room in scratch)]
            )
            function = func.FuncOp(name, type_, visibility="private")
        softmax = online_softmax(RowScores(rows, argument)) if is_online() else None
        causal = _causal(Scores(rows, argument, dims_of(found.scores.results[0]), found.is_matrix), softmax)
        what = replace(row_kernel_of(rows), bounded=True) if causal is not None and not is_online() else fusion_of(rows)
        if rows.name.value in functions:
            rows = shared.described(rows, what)
        else:
            set_fusion(rows, what)
            rows = shared.add(rows)
        block = function.add_entry_block()
        values = dict(zip(inputs, block.arguments, strict=True))
        parts = (functions[callee_of(found.scores)], rows, functions[callee_of(found.context)])
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
            func.ReturnOp([values[result], *(_zeros(*room) for room in scratch)])
        inner = values[found.context.results[0]].owner.operation
        place = AttentionSite(inner, found.second, found.weights, argument, functions)
        set_fusion(function, described(place, rounding is not None, causal, softmax is not None and softmax.hides))
        function = shared.add(function)
        with ir.InsertionPoint(last):
            new = func.CallOp(function, inputs)
    generators = [g for v in found.rows.operands if (g := generator_of(v, functions)) is not None]
    result.replace_all_uses_with(new.results[0])
    for call in (*(() if rounding is None else (rounding,)), *reversed(calls)):
        _erase(call)
    for call in dict.fromkeys([*generators, *slices.values()]):
        _erase_unused(call)


def _causal(scores: Scores, softmax: OnlineSoftmax | None) -> Causal | None:
    """The columns that a mask hides. Where rows come in pieces, their kernel looks at the scores itself."""
    if not is_online():
        return causal_columns(scores)
    return None if softmax is None else hidden_columns(replace(scores, x=softmax.x))


def _room_for_a_row(found: Attention) -> tuple[Dims, ir.Type]:
    """The type of the scratch for a row of scores, and for one of weights where these are narrower."""
    scores = found.scores.results[0]
    (row,), element = dims_of(scores)[-1:], element_type_of(scores)
    is_same = element_type_of(found.rows.results[0]) == element
    return (row if is_same else row * 2,), element


def _erase_unused(call: ir.Operation) -> None:
    """Erase a call whose result nobody reads, and then those that it alone read."""
    if any(True for _ in readers(call.results[0])):
        return
    producers = [defining_op(root(v)) for v in call.operands]
    _erase(call)
    for producer in dict.fromkeys(producers):
        if producer is not None:
            _erase_unused(producer)


def _zeros(dims: Dims, element: ir.Type) -> ir.Value:
    scalar = ir.RankedTensorType.get([], element)
    number = ir.DenseElementsAttr.get_splat(scalar, ir.FloatAttr.get(element, 0.0))
    zero = ir.Operation.create("stablehlo.constant", results=[scalar], attributes={"value": number})
    return broadcast(zero.results[0], dims, [])


def _erase(op: ir.Operation) -> None:
    """Erase an op and the reshapes of its results that nobody reads."""
    for result in op.results:
        for use in list(result.uses):
            _erase(use.owner.operation)
    op.erase()


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
