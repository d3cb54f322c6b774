# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces the calls of an attention's gradient by one, of a function of kind "attention_gradient" that makes them.

The row kernel that computes weights is called again inside, with the results that the gradient needs. What is left of
the attention reads its weights alone, and becomes a kernel as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shlo_disc.shape_dialect.build import view
from shlo_disc.shape_dialect.dialect import fusion as kinds
from shlo_disc.shape_dialect.dialect.fusion import row_kernel_of, set_fusion
from shlo_disc.shape_dialect.dialect.problems import GradientProblem, Matrices, Visible
from shlo_disc.shape_dialect.dialect.records import FunctionName
from shlo_disc.shape_dialect.dialect.types import dims_of, element_type_of, tensor_type
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.nested_blocks import all_blocks
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import ZERO as NO_STRIDE
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.regions import callee_of, entry_block
from shlo_disc.transforms.decisions import Decisions
from shlo_disc.transforms.fusion.attention import kind
from shlo_disc.transforms.fusion.attention_gradient import ATTENTION_GRADIENT, AttentionGradient, Product
from shlo_disc.transforms.fusion.causal import MAGNITUDES
from shlo_disc.transforms.fusion.column_ranges import CalledRanges, ColumnRanges, called_ranges, column_ranges
from shlo_disc.transforms.fusion.masked_values import ZERO, MaskWalk, Scores
from shlo_disc.transforms.fusion.matrix_product import strides_of
from shlo_disc.transforms.fusion.outlined_calls import erase, erase_unused, zeros
from shlo_disc.transforms.fusion.rematerialize import Rematerialized, with_rematerialized
from shlo_disc.transforms.fusion.shared_functions import SharedFunctions
from shlo_disc.transforms.fusion.visible_columns import Masks, have_one_place, places_of, visible_columns


def outline_gradients(module: ir.Module, shared: SharedFunctions, decisions: Decisions) -> None:
    """Replace the calls of the gradients of attentions whose masks hide columns, in place."""
    calls = [op.operation for block in all_blocks(entry_block(module)) for op in block.operations]
    rows = [call for call in calls if kind(call, shared.by_name) == "row_reduce"]
    matched = [ATTENTION_GRADIENT.match(lambda r: AttentionGradient.at(r, shared.by_name), call) for call in rows]
    for found in (found for found in matched if found is not None):
        planned = _Planned.of(module, found, shared)
        if planned is not None and decisions.take(ATTENTION_GRADIENT.name, found.rows, found.choice):
            planned.outline(module, shared)
        elif planned is not None:
            planned.ranges.function.operation.erase()
            _erase_new(shared, planned.rows, planned.gradient_rows)


@dataclass(frozen=True)
class _Planned:
    """A gradient whose hidden columns are known: its row kernels with masks inside, and what columns rows see.

    magnitude: the bound of upstream scores. before: the op before which all that is read is there.
    """

    found: AttentionGradient
    rows: Rematerialized
    gradient_rows: Rematerialized
    masks: Masks
    ranges: ColumnRanges
    magnitude: int
    before: ir.Operation

    @staticmethod
    def of(module: ir.Module, found: AttentionGradient, shared: SharedFunctions) -> _Planned | None:
        """A gradient with its proof; None where its mask hides nothing for sure."""
        with ir.InsertionPoint(module.body):
            function = _with_results(found.row_function, found.kept, shared.unique("kept_rows"))
        with ir.InsertionPoint(found.rows):
            call = func.CallOp(function, list(found.rows.operands)).operation
        known = {**shared.by_name, function.name.value: function}
        with ir.InsertionPoint(module.body):
            rows = with_rematerialized(call, known, shared.unique("weights_again"), masks=True)
            gradient = with_rematerialized(found.gradient_rows, known, shared.unique("score_gradients"), masks=True)
        call.erase()
        scores = Scores(rows.function, rows.operands.index(found.rows.operands[found.argument]), found.dims, True)
        masks = visible_columns(scores)
        magnitude = None if masks is None else _bound_of_upstream(found, rows, gradient, masks)
        before = None if magnitude is None else _place(found, [*rows.operands, *gradient.operands])
        with ir.InsertionPoint(module.body):
            name = shared.unique("visible_columns")
            ranges = None if masks is None or before is None else column_ranges(masks, found.dims[:-1], name)
        if rows.function != function:
            function.operation.erase()
        if masks is None or magnitude is None or before is None or ranges is None:
            _erase_new(shared, rows, gradient)
            return None
        return _Planned(found, rows, gradient, masks, ranges, magnitude, before)

    def outline(self, module: ir.Module, shared: SharedFunctions) -> None:
        """Replace the calls."""
        found = self.found
        with found.rows.location:
            ranges = called_ranges(self.masks, self.ranges, self.rows.operands, shared, self.before)
            rows, gradient = (_bounded(part.function, shared) for part in (self.rows, self.gradient_rows))
            outlined = _Outlined(self, ranges, rows, gradient, shared)
            function = shared.add(outlined.function(module, shared.unique("attention_gradient")))
            with ir.InsertionPoint(self.before):
                new = func.CallOp(function, outlined.inputs)
            for product, result in zip((found.query, found.key, found.value), new.results, strict=False):
                product.call.results[0].replace_all_uses_with(result)
            for call in reversed(found.calls):
                erase(call)
            self._keep_weights(module, shared)
        for call in dict.fromkeys([*self.rows.inside, *self.gradient_rows.inside]):
            erase_unused(call)

    def _keep_weights(self, module: ir.Module, shared: SharedFunctions) -> None:
        """Leave the weights as the only result of the attention's row kernel."""
        found = self.found
        if len(found.rows.results) == 1:
            return
        with ir.InsertionPoint(module.body):
            function = shared.add(_with_results(found.row_function, [found.weights], shared.unique("weights")))
        with ir.InsertionPoint(found.rows):
            call = func.CallOp(function, list(found.rows.operands))
        found.rows.results[found.weights].replace_all_uses_with(call.results[0])
        erase(found.rows)


def _erase_new(shared: SharedFunctions, *parts: Rematerialized) -> None:
    """Erase row kernels that were made for a gradient that stays as it is."""
    for part in parts:
        if part.function.name.value not in shared.by_name:
            part.function.operation.erase()


def _with_results(function: func.FuncOp, results: Sequence[int], name: str) -> func.FuncOp:
    """The function with some of its results, at the insertion point."""
    *operations, last = function.entry_block.operations
    returned = [last.operands[i] for i in results]
    needed, pending = set[ir.Operation](), list(returned)
    while pending:
        op = defining_op(pending.pop())
        if op is not None and op not in needed:
            needed.add(op)
            pending += list(op.operands)
    types = list(function.type.inputs)
    new = func.FuncOp(name, ir.FunctionType.get(types, [v.type for v in returned]), visibility="private")
    values = dict(zip(function.entry_block.arguments, new.add_entry_block().arguments, strict=True))
    with ir.InsertionPoint(new.entry_block):
        for op in (op for op in operations if op.operation in needed):
            clone = op.clone()
            for position, value in enumerate(op.operands):
                clone.operands[position] = values[value]
            values.update(zip(op.results, clone.results, strict=True))
        func.ReturnOp([values[v] for v in returned])
    set_fusion(new, row_kernel_of(function))
    return new


def _bounded(function: func.FuncOp, shared: SharedFunctions) -> func.FuncOp:
    """A row kernel among the module's functions, as one that is given the columns that count."""
    what = replace(row_kernel_of(function), bounded=True, begins=True)
    if function.name.value in shared.by_name:
        return shared.described(function, what)
    set_fusion(function, what)
    return shared.add(function)


def _place(found: AttentionGradient, read: list[ir.Value]) -> ir.Operation | None:
    """The op before which all that the kernel reads is there; None where a gradient is read earlier."""
    order = {op.operation: number for number, op in enumerate(found.rows.block.operations)}
    inside = {*found.rows.results, found.scores.call.results[0], *(v for call in found.calls for v in call.results)}
    matrices = [found.scores.own, found.scores.other, found.upstream.own, found.upstream.other]
    makers = [defining_op(v) for v in [*matrices, *read] if root(v) not in inside]
    last = max((order[op] for op in makers if op is not None and op in order), default=-1)
    users = [use.owner.operation for p in (found.query, found.key, found.value) for use in p.call.results[0].uses]
    if any(user not in order or order[user] <= last for user in users):
        return None
    return list(order)[last + 1]


# ---- the proof ------------------------------------------------------------------------------------------------------


def _bound_of_upstream(
    found: AttentionGradient, rows: Rematerialized, gradient: Rematerialized, masks: Masks
) -> int | None:
    """A bound of upstream scores up to which hidden elements add exactly 0 to all gradients, None for no such one."""
    argument = gradient.operands.index(found.gradient_rows.operands[found.upstream_argument])
    scores = Scores(gradient.function, argument, found.dims, True)
    results = {found.rows.results[i]: position for position, i in enumerate(found.kept)}
    read = [(number, results[root(v)]) for number, v in enumerate(gradient.operands) if root(v) in results]
    *_, last = rows.function.entry_block.operations
    arguments = gradient.function.entry_block.arguments
    if not have_one_place(scores, places_of(scores), {arguments[number] for number, _ in read}):
        return None
    for magnitude in MAGNITUDES:
        walks = []
        for known in masks.walks:
            walk = MaskWalk(scores, magnitude)
            walk.known.update({arguments[number]: known.known[last.operands[result]] for number, result in read})
            walk.follow()
            walks.append(walk)
        if all(not walk.changed and walk.result.hidden == ZERO for walk in walks):
            return magnitude
    return None


# ---- the function ---------------------------------------------------------------------------------------------------


class _Outlined:
    """The function of a gradient, and the values that a call of it takes."""

    def __init__(
        self, planned: _Planned, ranges: CalledRanges, rows: func.FuncOp, gradient: func.FuncOp, shared: SharedFunctions
    ):
        found = planned.found
        self.planned, self.found, self.ranges, self.shared = planned, found, ranges, shared
        self.rows, self.gradient = rows, gradient
        self.made = {found.rows.results[i]: position for position, i in enumerate(found.kept)}
        products = (found.scores, found.upstream)
        matrices = [v for p in products for v in (p.operand(0), p.operand(1))]
        read = [v for v in (*planned.rows.operands, *planned.gradient_rows.operands) if not self._is_inside(v)]
        self.inputs = list(dict.fromkeys([*matrices, *read, *ranges.values]))

    def _is_inside(self, value: ir.Value) -> bool:
        found = self.found
        return root(value) in {found.scores.call.results[0], found.upstream.call.results[0], *self.made}

    @property
    def kept_types(self) -> list[ir.Type]:
        """The types of the results that the row kernel keeps, as the program has them."""
        return [self.found.rows.results[i].type for i in self.found.kept]

    @property
    def of_rows(self) -> list[int]:
        """The positions of kept results that are one number a row, and have buffers of their own."""
        *_, last = self.rows.entry_block.operations
        return [i for i, v in enumerate(last.operands) if dims_of(v) != self.found.whole]

    @property
    def buffers(self) -> int:
        """The buffers of a block of rows: scores, kept elements, upstream scores and their gradients."""
        return 3 + len(self.made) - len(self.of_rows)

    def function(self, module: ir.Module, name: str) -> func.FuncOp:
        """The function, which makes the calls that it stands for."""
        found, functions = self.found, self.shared.by_name
        gradients = [product.call.results[0] for product in (found.query, found.key, found.value)]
        element = element_type_of(gradients[0])
        room = (found.dims[-1] * self.buffers,)
        results = (
            [v.type for v in gradients] + [self.kept_types[i] for i in self.of_rows] + [tensor_type(room, element)]
        )
        with ir.InsertionPoint(module.body):
            function = func.FuncOp(
                name, ir.FunctionType.get([v.type for v in self.inputs], results), visibility="private"
            )
        values = dict(zip(self.inputs, function.add_entry_block().arguments, strict=True))

        def call(callee: func.FuncOp, operands: Sequence[ir.Value]) -> list[ir.Value]:
            read = [values[v] if v in values else view(values[root(v)], dims_of(v)) for v in operands]
            return list(func.CallOp(callee, read).results)

        def made(op: ir.Operation) -> None:
            values[op.results[0]] = call(functions[callee_of(op)], list(op.operands))[0]

        with ir.InsertionPoint(function.entry_block):
            made(found.scores.call)
            kept = call(self.rows, self.planned.rows.operands)
            values.update(zip((found.rows.results[i] for i in found.kept), kept, strict=True))
            made(found.upstream.call)
            values[found.gradient_rows.results[0]] = call(self.gradient, self.planned.gradient_rows.operands)[0]
            for product in (found.query, found.key, found.value):
                made(product.call)
            func.ReturnOp([*(values[v] for v in gradients), *(kept[i] for i in self.of_rows), zeros(room, element)])
        set_fusion(function, self._described())
        return function

    def _described(self) -> kinds.AttentionGradient:
        full = [i for i in range(len(self.made)) if i not in self.of_rows]
        places = {i: -2 - number for number, i in enumerate(full)}
        places |= {i: len(self.inputs) + 3 + number for number, i in enumerate(self.of_rows)}
        return kinds.AttentionGradient(
            rows=FunctionName(self.rows.name.value),
            gradient_rows=FunctionName(self.gradient.name.value),
            row_operands=(*self._numbers(self.planned.rows, places), *(places[i] for i in range(len(places)))),
            gradient_operands=(*self._numbers(self.planned.gradient_rows, places), -self.buffers),
            weights=1,
            buffers=self.buffers,
            problem=self._problem(),
        )

    def _numbers(self, part: Rematerialized, places: dict[int, int]) -> Iterator[int]:
        for value in part.operands:
            source = root(value)
            if source == self.found.scores.call.results[0]:
                yield -1
            elif source == self.found.upstream.call.results[0]:
                yield 1 - self.buffers
            else:
                yield places[self.made[source]] if source in self.made else self.inputs.index(value)

    # ---- the problem ------------------------------------------------------------------------------------------------

    def _problem(self) -> GradientProblem:
        found = self.found
        first, end = (self.inputs.index(v) for v in self.ranges.values)
        depth, width = (dims_of(p.own)[p.product.inner[p.side]] for p in (found.scores, found.upstream))
        *batch, row = self.ranges.strides
        return GradientProblem(
            element=str(element_type_of(found.scores.own)),
            batch=found.dims[:-2],
            rows=found.dims[-2],
            columns=found.dims[-1],
            depth=depth,
            width=width,
            query=self._side(found.scores, found.scores.side),
            key=self._side(found.scores, 1 - found.scores.side),
            value=self._side(found.upstream, 1 - found.upstream.side),
            upstream=self._side(found.upstream, found.upstream.side),
            query_gradient=self._gradient(found.query, 0),
            key_gradient=self._gradient(found.key, 1),
            value_gradient=self._gradient(found.value, 2),
            visible=Visible(first, end, self.ranges.magnitude),
            visible_batch=tuple(batch),
            visible_row=row,
            magnitude=self.planned.magnitude,
        )

    def _side(self, of: Product, side: int) -> Matrices:
        """A side of a product that makes scores: its rows are rows of these, or columns."""
        value = of.operand(side)
        strides = strides_of(dims_of(value))
        *batch, row, column = of.product.axes
        own = row[side] if row[side] is not None else column[side]
        return Matrices(
            self.inputs.index(value),
            tuple(_at(strides, axes[side]) for axes in batch),
            _at(strides, own),
            strides[of.product.inner[side]],
        )

    def _gradient(self, of: Product, number: int) -> Matrices:
        """The result of a product that reads scores: one of its axes is none of theirs."""
        rank = len(self.found.dims)
        strides = strides_of(dims_of(of.call.results[0]))
        places = {axes[of.side]: strides[i] for i, axes in enumerate(of.product.axes)}
        row = places.get(rank - 2, places.get(rank - 1, NO_STRIDE))
        return Matrices(number, tuple(places[axis] for axis in range(rank - 2)), row, places[None])


def _at(strides: list[Expr], axis: int | None) -> Expr:
    return NO_STRIDE if axis is None else strides[axis]
