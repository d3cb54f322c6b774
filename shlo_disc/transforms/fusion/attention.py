# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: two products and the row kernel between them as one kernel, so that the scores need no buffer.

The pass looks at the calls of outlined fusions: a product whose result, taken row by row, only one row kernel reads,
whose result again only one product reads, contracted along the row. They become one function of kind "attention" that
calls the three. Its rows are independent of each other, so a kernel may go through them block by block and keep the
scores of a block in cache (the idea of FlashAttention, Dao et al., 2022; but rows are whole, whatever is done to them).
A second result of the function is room for one row of scores, for the time when a thread finds no memory of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shlo_disc.mlir import func, ir, stablehlo
from shlo_disc.shape_dialect.annotate import entry_block
from shlo_disc.shape_dialect.propagation import integers
from shlo_disc.shape_dialect.regions import all_blocks
from shlo_disc.shape_dialect.types import Dims, dims_of, element_type_of, tensor_type
from shlo_disc.transforms.fusion.access import defining_op
from shlo_disc.transforms.fusion.budget import Budget
from shlo_disc.transforms.fusion.causal import CAUSAL, causal_columns
from shlo_disc.transforms.fusion.generated import generator_of, with_generators
from shlo_disc.transforms.fusion.slices import RowSlice
from shlo_disc.transforms.simplify.dot import SUM_TYPES
from shlo_disc.transforms.views import VIEWS, broadcast, root, view

MOST_ROW_AXES = 5
"""Sizes of the scores besides the columns; more of them are left alone."""

MOST_OPERANDS = 16
"""Operands of a row kernel that joins."""

FLOATS = frozenset({"f32", "f64", "bf16", "f16"})
"""Element types of query, key and value; scores have that of their sums."""

ROUNDED = frozenset({"bf16"})
"""Element types of results to which the kernel rounds its sums."""

Functions = Mapping[str, func.FuncOp]


@dataclass(frozen=True)
class Product:
    """What the sizes of a product's result are: for each one the axes of both operands, None where it is not there.

    `arguments` are the numbers of the operands, `inner` the axes that are contracted.
    """

    arguments: tuple[int, int]
    axes: tuple[tuple[int | None, int | None], ...]
    inner: tuple[int, int]

    @staticmethod
    def of(function: func.FuncOp) -> Product | None:
        """The product of a fusion of kind "dot"; None when it contracts other than one axis, or is not of floats."""
        dot, *others = (op.operation for op in function.entry_block.operations)
        arguments = list(function.entry_block.arguments)
        if dot.name != "stablehlo.dot_general" or any(v not in arguments for v in dot.operands):
            return None
        element, result = str(element_type_of(dot.operands[0])), str(element_type_of(dot.results[0]))
        if element not in FLOATS or result != SUM_TYPES[element]:
            return None
        numbers = stablehlo.DotDimensionNumbers(dot.attributes["dot_dimension_numbers"])
        lhs_batch, rhs_batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
        lhs_inner, rhs_inner = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
        transposes = len(others) == 2 and others[0].name == "stablehlo.transpose"
        if len(lhs_inner) != 1 or len(others) != 1 + transposes:
            return None
        axes: list[tuple[int | None, int | None]] = list(zip(lhs_batch, rhs_batch, strict=True))
        axes += [(i, None) for i in range(len(dims_of(dot.operands[0]))) if i not in {*lhs_batch, *lhs_inner}]
        axes += [(None, i) for i in range(len(dims_of(dot.operands[1]))) if i not in {*rhs_batch, *rhs_inner}]
        if transposes:
            axes = [axes[i] for i in integers(others[0].attributes["permutation"])]
        lhs, rhs = (arguments.index(v) for v in dot.operands)
        return Product((lhs, rhs), tuple(axes), (lhs_inner[0], rhs_inner[0]))


@dataclass(frozen=True)
class Attention:
    """Three calls, and how they read each other.

    `key`: which operand of the first product the columns come from; `weights`: which operand of the second one is the
    row kernel's result; `argument`: which argument of the row kernel the scores are.
    """

    scores: ir.Operation
    rows: ir.Operation
    context: ir.Operation
    first: Product
    second: Product
    key: int
    weights: int
    argument: int

    @staticmethod
    def of(context: ir.Operation, functions: Functions) -> Attention | None:
        """The attention that ends with the call `context`."""
        second = _product(context, functions)
        if second is None:
            return None
        for weights in (0, 1):
            value = context.operands[second.arguments[weights]]
            rows = defining_op(root(value))
            if rows is None or second.inner[weights] != len(dims_of(value)) - 1 or not _is_row_kernel(rows, functions):
                continue
            if not _is_only_read_by(rows.results[0], context):
                continue
            for argument, operand in enumerate(rows.operands):
                scores = defining_op(root(operand))
                first = None if scores is None else _product(scores, functions)
                if scores is None or first is None or not _is_only_read_by(scores.results[0], rows):
                    continue
                key = 0 if first.axes[-1][1] is None else 1
                found = Attention(scores, rows, context, first, second, key, weights, argument)
                if found._fits(functions):
                    return found
        return None

    def operand(self, call: ir.Operation, product: Product, side: int) -> ir.Value:
        """An operand of one of the products."""
        return call.operands[product.arguments[side]]

    def _fits(self, functions: Functions) -> bool:
        """Rows and columns mean the same to all three, and neither product has a matrix that is packed ahead."""
        *rows, column = self.first.axes
        scores, weights = (
            dims_of(self.scores.results[0]),
            dims_of(self.operand(self.context, self.second, self.weights)),
        )
        of_key = [axes[self.key] for axes in rows]
        of_query = [axes[1 - self.key] for axes in rows]
        query = self.operand(self.scores, self.first, 1 - self.key)
        if element_type_of(query) != element_type_of(self.operand(self.context, self.second, self.weights)):
            return False
        if column[1 - self.key] is not None or None in of_query or scores != weights or len(rows) > MOST_ROW_AXES:
            return False
        free = [axes for axes in self.second.axes if axes[self.weights] is None]
        of_value = [axes[1 - self.weights] for axes in self.second.axes if axes[self.weights] is not None]
        if len(free) > 1 or not rows:
            return False
        key = self.operand(self.scores, self.first, self.key)
        value = self.operand(self.context, self.second, 1 - self.weights)
        if _is_weight(key, of_key) or _is_weight(value, of_value):
            return False
        return _keeps_rows(functions[_callee(self.rows)], self.argument)


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _kind(call: ir.Operation, functions: Functions) -> str:
    return ir.StringAttr(functions[_callee(call)].attributes["disc.kind"]).value if call.name == "func.call" else ""


def _product(call: ir.Operation, functions: Functions) -> Product | None:
    return Product.of(functions[_callee(call)]) if _kind(call, functions) == "dot" else None


def _is_row_kernel(call: ir.Operation, functions: Functions) -> bool:
    return _kind(call, functions) == "row_reduce" and len(call.results) == 1 and len(call.operands) <= MOST_OPERANDS


def _keeps_rows(function: func.FuncOp, argument: int) -> bool:
    """Whether a row kernel reads the argument where it writes its result, over one axis of columns."""
    if "disc.collapsed" not in function.attributes or ir.IntegerAttr(function.attributes["disc.columns"]).value != 1:
        return False
    *_, last = function.entry_block.operations
    return dims_of(function.entry_block.arguments[argument]) == dims_of(last.operands[0])


def _is_weight(value: ir.Value, batch: list[int | None]) -> bool:
    """A matrix of static size that the program is given, the same for all rows: its product finds it packed."""
    source = root(value)
    owner = defining_op(source)
    given = owner is None or owner.name == "stablehlo.constant"
    return given and all(axis is None for axis in batch) and all(d.constant is not None for d in dims_of(value))


def _is_only_read_by(value: ir.Value, reader: ir.Operation) -> bool:
    """Whether a call is the only reader of a value, by one operand, through reshapes."""
    if sum(root(v) == value for v in reader.operands) != 1:
        return False
    return all(user == reader for user in _readers(value))


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    for use in value.uses:
        user = use.owner.operation
        if user.name in VIEWS:
            yield from _readers(user.results[0])
        else:
            yield user


# ---- outlining ------------------------------------------------------------------------------------------------------


def outline_attentions(module: ir.Module, budget: Budget) -> None:
    """Replace the calls of every attention of a fused module by one, in place."""
    functions = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    names = (f"attention_{number}" for number in itertools.count())
    for block in all_blocks(entry_block(module)):
        for op in list(block.operations):
            found = Attention.of(op.operation, functions) if op.operation.name == "func.call" else None
            if found is not None and budget.take():
                functions |= _outline(module, found, functions, next(names))


def _outline(module: ir.Module, found: Attention, functions: Functions, name: str) -> dict[str, func.FuncOp]:
    inside = {found.scores.results[0], found.rows.results[0]}
    calls = (found.scores, found.rows, found.context)
    rounding = _rounding(found, functions)
    last = found.context if rounding is None else rounding
    result = last.results[0]
    row, element = _room_for_a_row(found)
    with found.context.location:
        with ir.InsertionPoint(module.body):
            rows, kept = with_generators(found.rows, functions, f"{name}_rows")
        _mark_causal(rows, kept.index(found.argument), dims_of(found.scores.results[0]))
        operands = [list(found.scores.operands), [found.rows.operands[i] for i in kept], list(found.context.operands)]
        read = list(dict.fromkeys(v for values in operands for v in values if root(v) not in inside))
        slices = {v: call for v in read if (call := _row_slice(v, functions)) and v not in operands[1]}
        inputs = list(dict.fromkeys(slices[v].operands[0] if v in slices else v for v in read))
        with ir.InsertionPoint(module.body):
            type_ = ir.FunctionType.get([v.type for v in inputs], [result.type, tensor_type(row, element)])
            function = func.FuncOp(name, type_, visibility="private")
        function.attributes["disc.kind"] = ir.StringAttr.get("attention")
        block = function.add_entry_block()
        values = dict(zip(inputs, block.arguments, strict=True))
        parts = (functions[_callee(found.scores)], rows, functions[_callee(found.context)])
        with ir.InsertionPoint(block):
            for v, call in slices.items():
                piece = func.CallOp(functions[_callee(call)], [values[call.operands[0]]]).results[0]
                values[v] = view(piece, dims_of(v))
            for call, part, own in zip(calls, parts, operands, strict=True):
                arguments = [values[v] if v in values else view(values[root(v)], dims_of(v)) for v in own]
                values[call.results[0]] = func.CallOp(part, arguments).results[0]
            if rounding is not None:
                sums = [view(values[found.context.results[0]], dims_of(rounding.operands[0]))]
                values[result] = func.CallOp(functions[_callee(rounding)], sums).results[0]
            func.ReturnOp([values[result], _zeros(row, element)])
        with ir.InsertionPoint(last):
            new = func.CallOp(function, inputs)
    generators = [g for v in found.rows.operands if (g := generator_of(v, functions)) is not None]
    result.replace_all_uses_with(new.results[0])
    for call in (*(() if rounding is None else (rounding,)), *reversed(calls)):
        _erase(call)
    for call in dict.fromkeys([*generators, *slices.values()]):
        _erase_unused(call)
    return {part.name.value: part for part in (function, rows)}


def _room_for_a_row(found: Attention) -> tuple[Dims, ir.Type]:
    """The type of room for a row of scores, and for one of weights where these are narrower."""
    scores = found.scores.results[0]
    (row,), element = dims_of(scores)[-1:], element_type_of(scores)
    is_same = element_type_of(found.rows.results[0]) == element
    return (row if is_same else row * 2,), element


def _rounding(found: Attention, functions: Functions) -> ir.Operation | None:
    """The call that alone reads the context, and does nothing but round it."""
    readers = list(_readers(found.context.results[0]))
    if len(readers) != 1 or _kind(readers[0], functions) != "loop" or readers[0].block != found.context.block:
        return None
    convert, *others = (op.operation for op in functions[_callee(readers[0])].entry_block.operations)
    is_alone = convert.name == "stablehlo.convert" and len(others) == 1
    return readers[0] if is_alone and str(element_type_of(convert.results[0])) in ROUNDED else None


def _row_slice(value: ir.Value, functions: Functions) -> ir.Operation | None:
    """The call of a loop that does nothing but cut `value` out of rows."""
    call = defining_op(root(value))
    if call is None or _kind(call, functions) != "loop":
        return None
    piece = RowSlice.of(functions[_callee(call)])
    return None if piece is None or piece.strides(dims_of(value)) is None else call


def _mark_causal(rows: func.FuncOp, argument: int, scores: Dims) -> None:
    """Note which columns the row kernel's mask hides, if its last row axis is that of the scores."""
    dims = dims_of(rows.entry_block.arguments[argument])
    if len(dims) < 2 or len(scores) < 2 or dims[-2] != scores[-2] or dims[-2].constant == 1:
        return
    causal = causal_columns(rows, argument)
    if causal is not None:
        rows.attributes[CAUSAL] = ir.DenseI64ArrayAttr.get([causal.offset, causal.magnitude])


def _erase_unused(call: ir.Operation) -> None:
    """Erase a call whose result nobody reads, and then those that it alone read."""
    if any(True for _ in _readers(call.results[0])):
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
