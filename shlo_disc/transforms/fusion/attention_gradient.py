# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of an attention: what of it is matched, and what has to hold for it to be one kernel.

A row kernel computes weights from scores. The gradient reads them, and whatever else that kernel keeps, in a second row
kernel: from upstream scores, the product of the gradient of the result with the value, it computes the gradient of the
scores. Three products make the gradients of query, key and value from that and from the weights. In one kernel, scores
and weights are computed again for a block of rows (FlashAttention, Dao et al., 2022), so that none of them goes through
memory. It is for attentions whose mask hides columns: entries of a batch are one thread's each, where library calls of
whole products use all.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.fusion import MOST_BUFFERS, columns_of, fusion_of
from shlo_disc.shape_dialect.dialect.types import Dims, dims_of, element_type_of
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.ops.access import defining_op
from shlo_disc.shape_dialect.ops.views import root
from shlo_disc.shape_dialect.utils.regions import callee_of
from shlo_disc.transforms.cost import Choice
from shlo_disc.transforms.decisions import Pattern
from shlo_disc.transforms.fusion.attention import (
    AttentionProduct,
    Functions,
    is_only_read_by,
    kind,
    product_of_call,
    readers,
)
from shlo_disc.transforms.fusion.costs import handing_over

ATTENTION_GRADIENT: Pattern[AttentionGradient] = Pattern(
    "attention-gradient", "the gradients of an attention compute its weights again, where a mask hides columns"
)

ELEMENTS = frozenset({"f32", "f64"})


@dataclass(frozen=True)
class Product:
    """The call of a product, and which side of it is the one with scores' sizes, or the first one."""

    call: ir.Operation
    product: AttentionProduct
    side: int = 0

    def operand(self, side: int) -> ir.Value:
        """An operand of the product."""
        return self.call.operands[self.product.arguments[side]]

    @property
    def own(self) -> ir.Value:
        """The side that is named."""
        return self.operand(self.side)

    @property
    def other(self) -> ir.Value:
        """The other side."""
        return self.operand(1 - self.side)


@dataclass(frozen=True)
class AttentionGradient:
    """The calls of an attention and its gradient.

    scores and upstream are products whose side is the query, or the gradient of the result; context, and those that
    compute the gradients of query, key and value have the weights, or the gradient of the scores, as their side.
    argument and upstream_argument: which operand of its row kernel each of the first two is. weights: which result of
    the row kernel has the weights.
    """

    rows: ir.Operation
    gradient_rows: ir.Operation
    scores: Product
    upstream: Product
    context: Product
    query: Product
    key: Product
    value: Product
    argument: int
    upstream_argument: int
    weights: int
    functions: Functions

    def choice(self) -> Choice:
        """Scores, weights and their gradients handed on in memory, or in one kernel."""
        kernels = (self.scores.call, self.rows, self.upstream.call, self.gradient_rows)
        return handing_over([value for kernel in kernels for value in kernel.results])

    @staticmethod
    def at(rows: ir.Operation, functions: Functions) -> AttentionGradient | None:
        """The calls around a row kernel that computes weights; None where there are others."""
        read = [user for result in rows.results for user in dict.fromkeys(readers(result))]
        kernels = [user for user in dict.fromkeys(read) if kind(user, functions) == "row_reduce"]
        products = [user for user in dict.fromkeys(read) if kind(user, functions) == "dot"]
        if len(set(read)) != 3 or len(kernels) != 1 or len(products) != 2 or len(kernels[0].results) != 1:
            return None
        gradient_rows = kernels[0]
        scores = _made_by_product(rows, functions)
        upstream = _made_by_product(gradient_rows, functions)
        weights = next((i for i, v in enumerate(rows.results) if any(u in products for u in readers(v))), None)
        if scores is None or upstream is None or weights is None:
            return None
        context, value = _by_columns(rows.results[weights], products, functions)
        last = list(dict.fromkeys(readers(gradient_rows.results[0])))
        query, key = _by_columns(gradient_rows.results[0], last, functions)
        if context is None or value is None or query is None or key is None:
            return None
        return AttentionGradient(
            rows, gradient_rows, scores[1], upstream[1], context, query, key, value,
            scores[0], upstream[0], weights, functions,
        )  # fmt: skip

    @property
    def calls(self) -> tuple[ir.Operation, ...]:
        """The calls that the kernel replaces, in their order."""
        return (self.upstream.call, self.gradient_rows, self.value.call, self.key.call, self.query.call)

    @property
    def row_function(self) -> func.FuncOp:
        """The function of the row kernel."""
        return self.functions[callee_of(self.rows)]

    @property
    def gradient_function(self) -> func.FuncOp:
        """The function of the row kernel of the gradient."""
        return self.functions[callee_of(self.gradient_rows)]

    @property
    def dims(self) -> Dims:
        """The sizes of the scores."""
        return dims_of(self.scores.call.results[0])

    @property
    def kept(self) -> list[int]:
        """The results of the row kernel that its gradient needs: the weights, then what the other row kernel reads."""
        roots = {root(v) for v in self.gradient_rows.operands}
        others = (i for i, v in enumerate(self.rows.results) if i != self.weights and v in roots)
        return [self.weights, *others]

    @property
    def whole(self) -> Dims:
        """The sizes of the scores in the row kernel, which may be merged."""
        return dims_of(self.row_function.entry_block.arguments[self.argument])

    @property
    def upstream_whole(self) -> Dims:
        """The sizes of the scores in the row kernel of the gradient."""
        return dims_of(self.gradient_function.entry_block.arguments[self.upstream_argument])


def _made_by_product(rows: ir.Operation, functions: Functions) -> tuple[int, Product] | None:
    """The operand of a row kernel that a product makes, which only this kernel reads."""
    for number, operand in enumerate(rows.operands):
        call = defining_op(root(operand))
        product = None if call is None else product_of_call(call, functions)
        if call is not None and product is not None and product.axes and is_only_read_by(call.results[0], rows):
            side = 0 if product.axes[-1][0] is None else 1
            return number, Product(call, product, side)
    return None


def _by_columns(
    scores: ir.Value, calls: list[ir.Operation], functions: Functions
) -> tuple[Product | None, Product | None]:
    """The one of two products of scores that contracts columns, and the one that contracts rows."""
    found: dict[int, Product] = {}
    for call in calls:
        product = product_of_call(call, functions)
        for side in (0, 1) if product is not None else ():
            made = Product(call, product, side)  # type: ignore[arg-type]
            if root(made.own) == root(scores) and root(made.other) != root(scores):
                found[len(dims_of(made.own)) - 1 - made.product.inner[side]] = made
    return (found.get(0), found.get(1)) if len(calls) == len(found) == 2 else (None, None)


# ---- what has to hold -----------------------------------------------------------------------------------------------


@ATTENTION_GRADIENT.requires("the calls stand in one block")
def _calls_are_in_one_block(a: AttentionGradient) -> bool:
    return all(call.block == a.rows.block for call in (*a.calls, a.scores.call, a.context.call))


@ATTENTION_GRADIENT.requires("elements are f32 or f64, all alike")
def _elements_are_alike(a: AttentionGradient) -> bool:
    values = [v for p in (a.scores, a.upstream, a.context, a.query, a.key, a.value) for v in (p.own, p.other)]
    values += [*a.gradient_rows.results, *(a.rows.results[i] for i in a.kept)]
    elements = {str(element_type_of(v)) for v in values}
    return len(elements) == 1 and elements <= ELEMENTS


@ATTENTION_GRADIENT.requires("scores of both products have the same rows and columns")
def _scores_are_alike(a: AttentionGradient) -> bool:
    read = (a.context.own, a.value.own, a.query.own, a.key.own, a.upstream.call.results[0])
    return len(a.dims) >= 2 and all(dims_of(v) == a.dims for v in read)


@ATTENTION_GRADIENT.requires("columns of the scores are the key's, and rows the query's")
def _rows_are_of_the_query(a: AttentionGradient) -> bool:
    return all(_is_by_rows(product) for product in (a.scores, a.upstream))


def _is_by_rows(p: Product) -> bool:
    """Tells whether the last axis is the other side's, the one before this side's, and all others are of both."""
    *batch, row, column = (axes if p.side == 0 else axes[::-1] for axes in p.product.axes)
    own, other = row[0] is not None and row[1] is None, column[0] is None
    return own and other and all(axis is not None for axes in batch for axis in axes)


@ATTENTION_GRADIENT.requires("gradients have one axis of their own, and those of the scores but the contracted one")
def _gradients_have_one_axis(a: AttentionGradient) -> bool:
    return all(_has_one_axis(product) for product in (a.query, a.key, a.value))


def _has_one_axis(p: Product) -> bool:
    rank = len(dims_of(p.own))
    axes = [axes if p.side == 0 else axes[::-1] for axes in p.product.axes]
    batch = all(of_scores is None or of_scores >= rank - 2 or other is not None for of_scores, other in axes)
    alone = all(of_scores is None or of_scores < rank - 2 or other is None for of_scores, other in axes)
    return batch and alone and sum(of_scores is None for of_scores, _ in axes) == 1


@ATTENTION_GRADIENT.requires("row kernels read and write elements of a row where they stand")
def _row_kernels_are_in_step(a: AttentionGradient) -> bool:
    kernels = ((a.row_function, a.whole, a.weights), (a.gradient_function, a.upstream_whole, 0))
    return all(
        fusion_of(function).collapsed
        and columns_of(function) == 1
        and whole[-1:] == a.dims[-1:]
        and dims_of(_returned(function)[result]) == whole
        for function, whole, result in kernels
    )


@ATTENTION_GRADIENT.requires("what the gradient reads of the row kernel runs along its rows, or is one number a row")
def _results_are_of_rows(a: AttentionGradient) -> bool:
    made = {a.rows.results[i]: dims_of(_returned(a.row_function)[i]) for i in a.kept}
    if any(dims not in (a.whole, a.whole[:-1]) for dims in made.values()):
        return False
    read = zip(a.gradient_rows.operands, a.gradient_function.entry_block.arguments, strict=True)
    rows, whole = a.upstream_whole[:-1], a.upstream_whole
    return all(dims_of(v) == (whole if made[root(o)] == a.whole else rows) for o, v in read if root(o) in made)


def _returned(function: func.FuncOp) -> list[ir.Value]:
    *_, last = function.entry_block.operations
    return list(last.operands)


@ATTENTION_GRADIENT.requires("the runtime takes so many buffers for a block of rows")
def _buffers_are_few(a: AttentionGradient) -> bool:
    return len(a.kept) + 3 <= MOST_BUFFERS


@ATTENTION_GRADIENT.requires("both products of a matrix read it the same way")
def _matrices_are_the_same(a: AttentionGradient) -> bool:
    pairs = ((a.scores.own, a.key.other), (a.scores.other, a.query.other), (a.upstream.own, a.value.other))
    return all(root(x) == root(y) and dims_of(x) == dims_of(y) for x, y in pairs)
