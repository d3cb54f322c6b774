# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The description of a fusion: the attribute `disc.fusion` of the private functions that `fuse` makes.

A fusion is a function of StableHLO ops, or of calls of other fusions, that becomes one kernel or one call of the
runtime. `#disc.fusion<"row_reduce", {collapsed, columns = 1 : i64}>` names its kind and says what later stages need to
know of it. There is one dataclass a kind; its fields are the entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from shlo_disc.shape_dialect.dialect.ops import FusionAttr
from shlo_disc.shape_dialect.dialect.problems import (
    AttentionProblem,
    ConvolutionProduct,
    GradientProblem,
    MatrixProduct,
)
from shlo_disc.shape_dialect.dialect.records import FunctionName, Malformed, read_variant, to_attribute
from shlo_disc.shape_dialect.dialect.remembered import remembered
from shlo_disc.shape_dialect.mlir import func, ir
from shlo_disc.shape_dialect.symbolic.expr import Expr

FUSION = "disc.fusion"
"""The attribute's name."""


@dataclass(frozen=True)
class Fusion:
    """The kinds derive from this. `kind` is the name in the attribute.

    collapsed: every operand is read at the index that is written, up to broadcasts, and axes are merged as far as
    possible.
    """

    kind: ClassVar[str] = ""
    collapsed: bool = False


KINDS: dict[str, type[Fusion]] = {}
"""The kinds by name."""

Kind = TypeVar("Kind", bound=type[Fusion])


def _kind(name: str) -> Callable[[Kind], Kind]:
    def add(cls: Kind) -> Kind:
        cls.kind = name
        KINDS[name] = cls
        return cls

    return add


# ---- kernels --------------------------------------------------------------------------------------------------------


@_kind("loop")
@dataclass(frozen=True)
class Loop(Fusion):
    """Computes each element of the results independently."""


@_kind("row_reduce")
@dataclass(frozen=True)
class RowReduce(Fusion):
    """Reduces each row along its last `columns` axes, then traverses it again: softmax, normalisations.

    accumulators: in a "gemm", the result whose buffer holds the sums of the product until the result is written; -1 if
    they need a separate buffer. bounded: the kernel gets the number of columns that count. begins: it gets the first of
    them, too. partials: as in "reduce".
    """

    columns: int = 0
    accumulators: int | None = None
    bounded: bool = False
    begins: bool = False
    partials: int = 0


@_kind("epilogue")
@dataclass(frozen=True)
class Epilogue(Fusion):
    """A loop in a "gemm" that reads tiles of accumulators: its argument `sums`, whose rows have `row` elements.

    accumulators: if the product can be computed separately, the result whose buffer holds its sums until the result is
    written; -1 if they need a separate buffer.
    """

    sums: int = 0
    row: Expr = Expr.const(1)
    accumulators: int | None = None


@_kind("reduce")
@dataclass(frozen=True)
class Reduce(Fusion):
    """A reduction along axes other than the last ones.

    by_columns: the kernel walks down columns: the axes are neighbours, and results have the sizes of the reduction's.
    partials: the number of last results that are scratch memory, in which several blocks leave their parts of what the
    reductions make, one for each value. Axis 0 of each is the parts; where it is 0, each block works by itself.
    """

    by_columns: bool = False
    partials: int = 0


@_kind("scatter")
@dataclass(frozen=True)
class Scatter(Fusion):
    """Changes some elements. `updates`: the argument from which each result starts, or -1."""

    updates: tuple[int, ...] = ()


@_kind("update")
@dataclass(frozen=True)
class Update(Fusion):
    """Writes one window. `updates`: the argument from which each result starts, or -1."""

    updates: tuple[int, ...] = ()


@_kind("concatenate")
@dataclass(frozen=True)
class Concatenate(Fusion):
    """Copies pieces one after the other."""


@_kind("nonzero")
@dataclass(frozen=True)
class Nonzero(Fusion):
    """The positions of the true elements of a mask. partials: as in "reduce": how many of them are in the part."""

    partials: int = 0


@dataclass(frozen=True)
class RecurrentLoop:
    """A loop over independent rows. `states`, `scalars` and `stacks` are positions among its loop-carried values.

    states: values whose axis 0 is the rows. stacks: values into which an iteration writes a window, without reading
    them; `windows` has the row axis of each window. covered: the stacks whose elements are all written. trip: the
    number of iterations, if it follows from sizes.
    """

    states: tuple[int, ...]
    scalars: tuple[int, ...] = ()
    stacks: tuple[int, ...] = ()
    windows: tuple[int, ...] = ()
    covered: tuple[int, ...] = ()
    trip: Expr | None = None


@_kind("recurrence")
@dataclass(frozen=True)
class Recurrence(Fusion):
    """Loops over independent rows, in program order: each thread runs all iterations for its own rows."""

    loops: tuple[RecurrentLoop, ...] = ()


@_kind("scan")
@dataclass(frozen=True)
class Scan(Fusion):
    """Sums, or other combinations, of all prefixes of an axis, or of all suffixes if `reverse`.

    partials: as in "reduce": for each line what its elements in the part are together.
    """

    axis: int = 0
    reverse: bool = False
    partials: int = 0


@_kind("select_and_scatter")
@dataclass(frozen=True)
class SelectAndScatter(Fusion):
    """The gradient of a pooling."""


@_kind("window")
@dataclass(frozen=True)
class Windows(Fusion):
    """Overlapping windows over operands in memory: pooling, and convolutions without a dedicated kernel."""


@_kind("sort")
@dataclass(frozen=True)
class Sort(Fusion):
    """Sorts along an axis. The second half of the results is scratch memory.

    parts: into how many parts each line is cut, which blocks sort and merge; 0 where a block has a whole line.
    """

    parts: Expr = Expr.const(0)


@_kind("top_k")
@dataclass(frozen=True)
class TopK(Fusion):
    """The first elements of a sorted axis. partials: as in "reduce": those of the part, of every operand."""

    partials: int = 0


# ---- calls of the runtime -------------------------------------------------------------------------------------------


@_kind("dot")
@dataclass(frozen=True)
class Dot(Fusion):
    """A dot_general: a GEMM if `product` is present, else a kernel.

    narrow: the arguments that a kernel of a product by a weight of narrow integers reads in place of the right-hand
    side: the integers, then scales and zero points. The right-hand side is the weight as floats, of which there are no
    rows where a library does not compute the product; where it never does, it is the integers. partials: as in
    "reduce": for each tile of the result its sums over a part of the depth.
    """

    product: MatrixProduct | None = None
    narrow: tuple[int, ...] = ()
    partials: int = 0


@_kind("convolution")
@dataclass(frozen=True)
class Convolution(Fusion):
    """A convolution: a GEMM over its windows if `product` is present, else a kernel."""

    product: ConvolutionProduct | None = None


@_kind("gemm")
@dataclass(frozen=True)
class Gemm(Fusion):
    """Products that share a left-hand side, each with its epilogue or row kernel, as one call.

    partials: the number of last results that are those of its products.
    """

    partials: int = 0


@_kind("attention")
@dataclass(frozen=True)
class Attention(Fusion):
    """Two products and the row kernel between them. `rows` is the function of that kernel.

    row_operands: for each operand of the row kernel, the operand of this fusion, or -1 for the scores. online: rows are
    processed in pieces, and the row kernel is a softmax, of the values that its first reduction reads; else the last
    result is scratch for a row of scores. hides: the weights of a row of nothing but -inf are 0 instead of NaN.
    partials: as in "reduce": for each row its largest element, the sum of its weights, and what these weigh.
    """

    rows: FunctionName = FunctionName("")
    row_operands: tuple[int, ...] = ()
    problem: AttentionProblem | None = None
    online: bool = False
    hides: bool = False
    partials: int = 0


MOST_BUFFERS = 8
"""Buffers for a block of rows that the kernels of the gradient of an attention may have."""


@_kind("attention_gradient")
@dataclass(frozen=True)
class AttentionGradient(Fusion):
    """The gradients of an attention in query, key and value. `rows` computes weights from scores, `gradient_rows` the
    gradient of the scores.

    row_operands, gradient_operands: the operands of these kernels and then their results: an operand of this fusion, or
    behind the last one a result, or -1 - n for buffer n of a block of rows. Buffer 0 has the scores, `weights` is the
    number of that of the weights, and the last two have upstream scores and score gradients, of `buffers` in all. The
    last result is scratch for a row in each buffer.
    """

    rows: FunctionName = FunctionName("")
    gradient_rows: FunctionName = FunctionName("")
    row_operands: tuple[int, ...] = ()
    gradient_operands: tuple[int, ...] = ()
    weights: int = 0
    buffers: int = 0
    problem: GradientProblem | None = None


@_kind("library")
@dataclass(frozen=True)
class Library(Fusion):
    """One call of a library function: of the runtime, of LAPACK, or registered by the user."""


# ---- reading and writing --------------------------------------------------------------------------------------------


def is_fusion(function: ir.OpView) -> bool:
    """Tells whether a function is a fusion."""
    return FUSION in function.attributes


def fusion_of(function: ir.OpView) -> Fusion:
    """The description of a fusion. Raises Malformed."""
    return _read_fusion(function.attributes[FUSION])


@remembered
def _read_fusion(attribute: ir.Attribute) -> Fusion:
    return read_variant(KINDS, attribute, FusionAttr, ("kind", "roles"), FUSION)


def kind_of(function: ir.OpView) -> str:
    """The kind of a fusion."""
    return fusion_of(function).kind


def set_fusion(function: ir.OpView, fusion: Fusion) -> None:
    """Write on a function what it is."""
    function.attributes[FUSION] = _write_fusion(fusion)


@remembered
def _write_fusion(fusion: Fusion) -> ir.Attribute:
    return FusionAttr.get(ir.StringAttr.get(fusion.kind), to_attribute(fusion))


def columns_of(function: ir.OpView) -> int:
    """The number of last axes that a row kernel reduces along; 0 for any other kernel, which has none."""
    fusion = fusion_of(function)
    return fusion.columns if isinstance(fusion, RowReduce) else 0


def is_by_columns(function: ir.OpView) -> bool:
    """Tells whether a kernel is a reduction that walks down columns."""
    fusion = fusion_of(function)
    return isinstance(fusion, Reduce) and fusion.by_columns


SPLIT = (Reduce, RowReduce, Attention, Scan, Nonzero, TopK, Dot, Gemm)
"""The kinds that may be split over blocks."""


def partials_of(function: ir.OpView) -> int:
    """The number of last results of a kernel that are scratch memory for the parts of several blocks."""
    fusion = fusion_of(function)
    return fusion.partials if isinstance(fusion, SPLIT) else 0


def results_of(function: func.FuncOp) -> list[ir.Value]:
    """The values that the body of a fusion returns, without the scratch memory for parts."""
    *_, last = function.entry_block.operations
    return list(last.operands)[: len(last.operands) - partials_of(function)]


def updates_of(function: ir.OpView) -> tuple[int, ...]:
    """For each result of a kernel that changes some elements only: the argument it starts from, or -1; else ()."""
    fusion = fusion_of(function)
    return fusion.updates if isinstance(fusion, Scatter | Update) else ()


def row_kernel_of(function: ir.OpView) -> RowReduce:
    """A fusion that has to be a row kernel. Raises Malformed."""
    fusion = fusion_of(function)
    if not isinstance(fusion, RowReduce):
        raise Malformed(f"@{ir.StringAttr(function.attributes['sym_name']).value} is no row kernel but a {fusion.kind}")
    return fusion


def accumulators_of(function: ir.OpView) -> int | None:
    """In whose buffer the sums that follow a product lie: a result's, or -1 for one of their own; None for none."""
    fusion = fusion_of(function)
    return fusion.accumulators if isinstance(fusion, Epilogue | RowReduce) else None


def product_of(function: ir.OpView) -> MatrixProduct | None:
    """The GEMM that a fusion is, if it is one; that of a convolution over its windows."""
    fusion = fusion_of(function)
    if isinstance(fusion, Dot):
        return fusion.product
    return fusion.product.product if isinstance(fusion, Convolution) and fusion.product is not None else None
