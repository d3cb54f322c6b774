# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The problems that the runtime solves, as `fuse` finds them: sizes and strides, and which operand is what.

All sizes and strides are in elements, over the symbols of the module. Operands are those of the fusion that the problem
is written on.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.shape_dialect.dialect.types import Dims, product
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr

MAX_BATCH = 4
"""Loops outside of a GEMM."""

MOST_REACH = (1 << 31) - 1
"""The largest position that a causal mask may count: it does so in 32 bits."""

MOST_ROW_AXES = 5
"""Loops outside of an attention: sizes of its scores besides the columns."""


@dataclass(frozen=True)
class Axis:
    """A loop of a GEMM: its size, and its stride in lhs, rhs and result (0: the axis is absent)."""

    size: Expr
    lhs: Expr
    rhs: Expr
    result: Expr

    def exchanged(self) -> Axis:
        """The loop with the sides exchanged."""
        return Axis(self.size, self.rhs, self.lhs, self.result)


@dataclass(frozen=True)
class MatrixProduct:
    """A batched GEMM over strided views. `lhs` and `rhs` are operand numbers, `element` their element type."""

    element: str
    lhs: int
    rhs: int
    batch: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: Axis

    @property
    def writes_columns(self) -> bool:
        """The result's unit stride is along m, so that tiles cannot write their rows in place."""
        return self.m.result.constant == 1 and self.n.result.constant != 1

    def transposed(self) -> MatrixProduct:
        """The same product with the sides exchanged: C = A B is C' = B' A'."""
        batch = tuple(axis.exchanged() for axis in self.batch)
        m, n, k = self.n.exchanged(), self.m.exchanged(), self.k.exchanged()
        return MatrixProduct(self.element, self.rhs, self.lhs, batch, m, n, k)

    def by_rows(self) -> MatrixProduct:
        """The same product with its sides exchanged where its result lies in columns: n has a stride of 1 in it."""
        return self.transposed() if self.writes_columns else self

    def rounds_to(self, result: str) -> bool:
        """Tells whether results have the element type (MLIR's name) of 16-bit operands and not that of their sums."""
        return self.element == result in ("bf16", "f16")

    @property
    def numbers(self) -> Dims:
        """The numbers for a kernel of products by rows: m, n, k, the strides of lhs, of rhs and of a row of the result,
        then the size of each batch axis and its strides in these."""
        m, n, k = self.m, self.n, self.k
        batch = (number for a in self.batch for number in (a.size, a.lhs, a.rhs, a.result))
        return (m.size, n.size, k.size, m.lhs, k.lhs, k.rhs, n.rhs, m.result, *batch)

    @property
    def rows(self) -> Expr:
        """The rows of the result, those of all matrices."""
        return product([*(axis.size for axis in self.batch), self.m.size])

    @property
    def is_row_major(self) -> bool:
        """Tells whether the result lies in memory in the order of batch, m, n, without gaps."""
        step = Expr.const(1)
        for axis in (self.n, self.m, *reversed(self.batch)):
            if axis.size.constant != 1 and axis.result != step:
                return False
            step = step * axis.size
        return True


@dataclass(frozen=True)
class ConvolutionProduct:
    """A convolution as a GEMM. Operand 0 is the input, operand 1 the weights.

    `input` and `result` have the order batch, space, features; `padding` is the padding at the low ends. may_transform:
    Winograd's algorithm may be used.
    """

    product: MatrixProduct
    input: Dims
    result: Dims
    window: Dims
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Dims
    may_transform: bool = False


@dataclass(frozen=True)
class Operand:
    """An operand of an attention: its number, and the position of its first element."""

    number: int
    start: int = 0


@dataclass(frozen=True)
class AttentionAxis:
    """A loop over rows of an attention: its size, and its strides (0: the axis is absent).

    visible: the stride in what says which columns rows see.
    """

    size: Expr
    query: Expr
    key: Expr
    value: Expr
    result: Expr
    visible: Expr = ZERO


@dataclass(frozen=True)
class Visible:
    """A row counts columns from an element of operand `first` up to one of operand `end`, as long as scores are at most
    `magnitude`. All columns of a row that sees none count: its end is not behind its first one.
    """

    first: int
    end: int
    magnitude: int


@dataclass(frozen=True)
class Causal:
    """Column c of row r counts only if c <= r + offset, as long as scores are at most `magnitude`.

    This requires that the offset is not negative, and that `reach`, the largest number computed from a position, fits
    in 32 bits. If rows are processed in pieces, the magnitude is 0 and what the softmax is of is at most `bound`
    in all other columns, for any scores: the kernel determines from it which columns count.
    """

    offset: Expr
    reach: Expr
    magnitude: int
    bound: float | None = None


@dataclass(frozen=True)
class AttentionProblem:
    """Attention with whole rows: scores = query key', weights = row kernel of the scores, result = weights value.

    batch: the outer loops. rows: the loop over the rows of one matrix, with the strides of query and result. The sizes
    are `columns` of the scores, `depth` of query and key, and `width` of value and result. query_depth: the stride of
    the query along the depth; the other strides are named in the same way. rounds: sums are rounded to the element type
    of the result. At most one of `causal` and `visible` is there.
    """

    element: str
    query: Operand
    key: Operand
    value: Operand
    batch: tuple[AttentionAxis, ...]
    rows: AttentionAxis
    columns: Expr
    depth: Expr
    width: Expr
    query_depth: Expr
    key_column: Expr
    key_depth: Expr
    value_column: Expr
    value_width: Expr
    result_width: Expr
    rounds: bool = False
    causal: Causal | None = None
    visible: Visible | None = None


@dataclass(frozen=True)
class Matrices:
    """Matrices, one for each entry of a batch: their operand or result, and strides of entries, rows and columns."""

    number: int
    batch: Dims
    row: Expr
    column: Expr


@dataclass(frozen=True)
class GradientProblem:
    """The gradients of an attention in query, key and value, from the one in its result, `upstream`.

    Scores, and weights from them, are computed again: upstream scores = upstream value', score gradients = gradient row
    kernel of them, query gradient = score gradients key, key gradient = score gradients' query, value gradient =
    weights' upstream. Matrices of `query` have `rows` rows of `depth` elements, those of `key` `columns` rows of them,
    those of `value` rows of `width` elements. visible: as of an attention, while upstream scores are at most
    `magnitude`.
    """

    element: str
    batch: Dims
    rows: Expr
    columns: Expr
    depth: Expr
    width: Expr
    query: Matrices
    key: Matrices
    value: Matrices
    upstream: Matrices
    query_gradient: Matrices
    key_gradient: Matrices
    value_gradient: Matrices
    visible: Visible
    visible_batch: Dims
    visible_row: Expr
    magnitude: int
