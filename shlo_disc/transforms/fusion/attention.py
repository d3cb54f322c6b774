# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: two products and the row kernel between them as one kernel, so that the scores need no buffer.

What is looked for among the calls of outlined fusions: a product whose result, taken row by row, only one row kernel
reads, whose result again only one product reads, contracted along the row. Its rows are independent of each other, so a
kernel may go through them block by block and keep the scores of a block in cache (the idea of FlashAttention, Dao et
al., 2022). On processors rows are whole, whatever is done to them; on GPUs they come in pieces, and are a softmax.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shlo_disc.shape_dialect.compile_state import policy
from shlo_disc.shape_dialect.dialect.fusion import columns_of, fusion_of, kind_of
from shlo_disc.shape_dialect.dialect.problems import MOST_ROW_AXES
from shlo_disc.shape_dialect.dialect.types import dims_of, dims_of_attr, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir, stablehlo
from shlo_disc.shape_dialect.ops import RESHAPES
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.element_types import SUM_TYPES
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.utils.attributes import integers
from shlo_disc.shape_dialect.utils.regions import callee_of, is_constant
from shlo_disc.transforms.cost import Choice
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.costs import handing_over
from shlo_disc.transforms.fusion.online_softmax import Scores, online_softmax

ATTENTION: Pattern[Attention] = Pattern("attention", "two products and the row kernel between them are one kernel")

FLOATS = frozenset({"f32", "f64", "bf16", "f16"})
"""Element types of query, key and value; scores have that of their sums, or theirs where products round."""

Functions = Mapping[str, func.FuncOp]


@dataclass(frozen=True)
class AttentionProduct:
    """The sizes of a product's result: for each one the axes of both operands, None where it is not there.

    `arguments` are the numbers of the operands, `inner` the axes that are contracted.
    """

    arguments: tuple[int, int]
    axes: tuple[tuple[int | None, int | None], ...]
    inner: tuple[int, int]

    @staticmethod
    def of(function: func.FuncOp) -> AttentionProduct | None:
        """The product of a fusion of kind "dot"; None when it contracts other than one axis, or is not of floats."""
        dot, *others = (op.operation for op in function.entry_block.operations)
        arguments = list(function.entry_block.arguments)
        if dot.name != "stablehlo.dot_general" or any(v not in arguments for v in dot.operands):
            return None
        element, result = str(element_type_of(dot.operands[0])), str(element_type_of(dot.results[0]))
        rounded = element if element in policy().rounded_products else SUM_TYPES.get(element)
        if element not in FLOATS or result not in (SUM_TYPES[element], rounded):
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
        return AttentionProduct((lhs, rhs), tuple(axes), (lhs_inner[0], rhs_inner[0]))


@dataclass(frozen=True)
class AttentionSite:
    """The site of a possible attention: the call of a product, which operand of it the weights are, and which argument
    of the row kernel that makes them the scores are."""

    context: ir.Operation
    second: AttentionProduct
    weights: int
    argument: int
    functions: Functions


@dataclass(frozen=True)
class Attention:
    """Three calls, and how they read each other.

    `key`: which operand of the first product the columns come from; `weights`: which operand of the second one is the
    row kernel's result; `argument`: which argument of the row kernel the scores are.
    """

    scores: ir.Operation
    rows: ir.Operation
    context: ir.Operation
    first: AttentionProduct
    second: AttentionProduct
    key: int
    weights: int
    argument: int
    functions: Functions

    def choice(self) -> Choice:
        """Scores and weights handed on in memory, or in one kernel."""
        return handing_over([*self.scores.results, *self.rows.results])

    @staticmethod
    def at(place: AttentionSite) -> Attention | None:
        """A product whose operand a row kernel makes, whose argument a product makes; None where that is not so."""
        second = place.second
        rows = defining_op(root(place.context.operands[second.arguments[place.weights]]))
        if rows is None or kind(rows, place.functions) != "row_reduce" or place.argument >= len(rows.operands):
            return None
        scores = defining_op(root(rows.operands[place.argument]))
        first = None if scores is None else product_of_call(scores, place.functions)
        if scores is None or first is None or not first.axes:
            return None
        key = 0 if first.axes[-1][1] is None else 1
        return Attention(
            scores, rows, place.context, first, second, key, place.weights, place.argument, place.functions
        )

    def operand(self, call: ir.Operation, product: AttentionProduct, side: int) -> ir.Value:
        """An operand of one of the products."""
        return call.operands[product.arguments[side]]

    @property
    def operands(self) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        """Query, key, weights and value."""
        query, key = (self.operand(self.scores, self.first, side) for side in (1 - self.key, self.key))
        weights, value = (self.operand(self.context, self.second, side) for side in (self.weights, 1 - self.weights))
        return query, key, weights, value

    @property
    def row_function(self) -> func.FuncOp:
        """The function of the row kernel."""
        return self.functions[callee_of(self.rows)]

    @property
    def key_rows(self) -> list[int | None]:
        """The axis of the key for each row axis of the scores."""
        return [axes[self.key] for axes in self.first.axes[:-1]]

    @property
    def value_rows(self) -> list[int | None]:
        """The axis of the value for each row axis of the weights, in the order of the result's."""
        return [axes[1 - self.weights] for axes in self.second.axes if axes[self.weights] is not None]

    @property
    def is_matrix(self) -> bool:
        """Tells whether neither key nor value has the last row axis."""
        last = len(self.first.axes) - 2
        of_value = [axes[1 - self.weights] for axes in self.second.axes if axes[self.weights] == last]
        return last >= 0 and self.key_rows[last] is None and of_value == [None]


def find_attention(context: ir.Operation, functions: Functions) -> Attention | None:
    """The attention that ends with the call `context`, if all that it needs is proved."""
    product = product_of_call(context, functions)
    if product is None:
        return None
    for weights in (0, 1):
        rows = defining_op(root(context.operands[product.arguments[weights]]))
        for argument in range(0 if rows is None else len(rows.operands)):
            found = ATTENTION.match(Attention.at, AttentionSite(context, product, weights, argument, functions))
            if found is not None and _is_worth_it(found):
                return found
    return None


def _is_worth_it(found: Attention) -> bool:
    """Neither product has a matrix that processors pack ahead, and the row kernel is not too large."""
    _, key, _, value = found.operands
    is_packed = _is_weight(key, found.key_rows) or _is_weight(value, found.value_rows)
    return (is_online() or not is_packed) and len(found.rows.operands) <= policy().attention_operands


def is_online() -> bool:
    """Tells whether the target goes through rows in pieces, and so takes a softmax only."""
    return policy().online_attention_depth > 0


def kind(call: ir.Operation, functions: Functions) -> str:
    """The kind of the fusion that a call runs; "" for any other op."""
    return kind_of(functions[callee_of(call)]) if call.name == "func.call" else ""


def product_of_call(call: ir.Operation, functions: Functions) -> AttentionProduct | None:
    """The product that a call computes, as one of an attention; None where it computes none, or no such one."""
    return AttentionProduct.of(functions[callee_of(call)]) if kind(call, functions) == "dot" else None


def _is_weight(value: ir.Value, batch: list[int | None]) -> bool:
    """A matrix of static size that the program is given, the same for all rows: its product finds it packed."""
    source = root(value)
    owner = defining_op(source)
    given = owner is None or is_constant(owner)
    return given and all(axis is None for axis in batch) and all(d.constant is not None for d in dims_of(value))


def readers(value: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read a value, or a view of it, once for each operand that they read it by."""
    for use in value.uses:
        user = use.owner.operation
        if user.name in RESHAPES:
            yield from readers(user.results[0])
        else:
            yield user


# ---- what an attention needs ----------------------------------------------------------------------------------------


def is_only_read_by(value: ir.Value, reader: ir.Operation) -> bool:
    """Tells whether a call is the only reader of a value, by one operand, through reshapes."""
    if sum(root(v) == value for v in reader.operands) != 1:
        return False
    return all(user == reader for user in readers(value))


@ATTENTION.requires("the calls stand in one block")
def _calls_are_in_one_block(a: Attention) -> bool:
    return a.scores.block == a.context.block and a.rows.block == a.context.block


@ATTENTION.requires("the row kernel has one result")
def _row_kernel_has_one_result(a: Attention) -> bool:
    return len(a.rows.results) == 1


@ATTENTION.requires("only the row kernel reads the scores")
def _scores_are_read_once(a: Attention) -> bool:
    return is_only_read_by(a.scores.results[0], a.rows)


@ATTENTION.requires("only the second product reads the weights, and only as one of its sides")
def _weights_are_read_once(a: Attention) -> bool:
    lhs, rhs = a.second.arguments
    return lhs != rhs and is_only_read_by(a.rows.results[0], a.context)


@ATTENTION.requires("query, key, weights and value have one element type")
def _elements_have_one_type(a: Attention) -> bool:
    query, *others = a.operands
    return all(element_type_of(v) == element_type_of(query) for v in others)


@ATTENTION.requires("columns of the scores are the key's, and rows the query's")
def _rows_are_of_the_query(a: Attention) -> bool:
    *rows, column = a.first.axes
    return bool(rows) and column[1 - a.key] is None and all(axes[1 - a.key] is not None for axes in rows)


@ATTENTION.requires("the second product contracts the columns")
def _columns_are_contracted(a: Attention) -> bool:
    return a.second.inner[a.weights] == len(a.first.axes) - 1


@ATTENTION.requires("scores and weights have the same sizes")
def _weights_are_as_large(a: Attention) -> bool:
    _, _, weights, _ = a.operands
    return dims_of(a.scores.results[0]) == dims_of(weights)


@ATTENTION.requires("the row kernel reads a score where it writes its weight")
def _weights_are_in_step(a: Attention) -> bool:
    *_, last = a.row_function.entry_block.operations
    read = dims_of(a.row_function.entry_block.arguments[a.argument])
    return fusion_of(a.row_function).collapsed and read == dims_of(last.operands[0])


@ATTENTION.requires("a row of the kernel is a row of the scores")
def _columns_are_the_scores(a: Attention) -> bool:
    read = dims_of(a.row_function.entry_block.arguments[a.argument])
    values = (v for op in a.row_function.entry_block.operations for v in (*op.operands, *op.results))
    runs_along_columns = len(read) == max(len(dims_of(v)) for v in values)
    return columns_of(a.row_function) == 1 and runs_along_columns and read[-1:] == dims_of(a.scores.results[0])[-1:]


@ATTENTION.requires("the runtime takes so many row axes")
def _row_axes_are_few(a: Attention) -> bool:
    return len(a.first.axes) - 1 <= MOST_ROW_AXES


@ATTENTION.requires("the value has at most one axis of its own")
def _value_has_one_axis(a: Attention) -> bool:
    return sum(axes[a.weights] is None for axes in a.second.axes) <= 1


@ATTENTION.requires("the runtime takes so many sizes of the row kernel")
def _row_sizes_are_few(a: Attention) -> bool:
    sizes: set[Expr] = set()
    for op in a.row_function.entry_block.operations:
        for value in (*op.operands, *op.results):
            sizes.update(dims_of(value))
        if op.operation.name == "disc.shape":
            sizes.update(dims_of_attr(op.attributes["dims"]))
    return len(sizes) <= policy().attention_row_sizes


@ATTENTION.requires("where rows come in pieces, the row kernel is a softmax")
def _rows_may_come_in_pieces(a: Attention) -> bool:
    return not is_online() or online_softmax(Scores(a.row_function, a.argument)) is not None


@ATTENTION.requires("where rows come in pieces, a thread has room for its part of them")
def _heads_are_narrow(a: Attention) -> bool:
    query, _, _, value = a.operands
    depth = dims_of(query)[a.first.inner[1 - a.key]].constant
    widths = [dims_of(value)[axes[1 - a.weights] or 0].constant for axes in a.second.axes if axes[a.weights] is None]
    most = policy().online_attention_depth
    return not is_online() or all(size is not None and 1 <= size <= most for size in (depth, *widths))
