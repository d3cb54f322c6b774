# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of the structures of the runtime's calls (`runtime/abi.py`) for an op of `disc_host`, field by field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shlo_disc.lowering.host_llvm.blocks import (
    Buffer,
    Entry,
    Symbol,
    Word,
    kernel_arguments,
    laid_out,
    sizes_of_product,
)
from shlo_disc.lowering_cpu.micro_kernels.gemm_format import FORMATS
from shlo_disc.lowering_cpu.micro_kernels.winograd_kernel import FUNCTIONS
from shlo_disc.runtime import abi
from shlo_disc.shape_dialect.dialect.host import (
    AttentionCall,
    AttentionGradientCall,
    ConvolutionCall,
    Gemm,
    GemmProduct,
    GemmTile,
    KernelUse,
)
from shlo_disc.shape_dialect.dialect.problems import AttentionAxis, ConvolutionProduct, Matrices, Visible
from shlo_disc.shape_dialect.symbolic.expr import ZERO, Expr

ONE = Expr.const(1)
_NO_AXIS = AttentionAxis(ONE, ZERO, ZERO, ZERO, ZERO)


def gemm_block(call: Gemm) -> list[Entry]:
    """Each `DiscDot`, behind it the arguments of its epilogue."""
    words: list[Entry] = []
    for product in call.products:
        arguments = epilogue_arguments(product)
        behind = len(words) + abi.DOT.words
        follower = -1 if product is call.products[-1] else behind + len(arguments)
        words += [*laid_out(abi.DOT, _dot(product, call.tile, behind, follower)), *arguments]
    return words


def epilogue_arguments(product: GemmProduct) -> list[Entry]:
    """Those of the kernel of a product's epilogue, if it has one."""
    return [] if product.epilogue is None else kernel_arguments(product.epilogue.use, product.epilogue.operands)


def _dot(product: GemmProduct, tile: GemmTile, behind: int, follower: int) -> dict[str, Entry | Sequence[Entry]]:
    """A `DiscDot` whose epilogue's arguments begin at word `behind`, before the next one at word `follower`."""
    problem = product.problem
    padding = abi.DOT.fields["batch"].count - len(problem.batch)
    return {
        "format": FORMATS.index(tile.format),
        "batch_rank": len(problem.batch),
        "batch": [*(a.size for a in problem.batch), *[ONE] * padding],
        "a_batch": [*(a.lhs for a in problem.batch), *[ZERO] * padding],
        "b_batch": [*(a.rhs for a in problem.batch), *[ZERO] * padding],
        "c_batch": [*(a.result for a in problem.batch), *[ZERO] * padding],
        **sizes_of_product(problem),
        "c_n": problem.n.result,
        "a": Buffer(problem.lhs),
        "b": Buffer(problem.rhs),
        "c": Buffer(product.result),
        "packed": Buffer(product.packed),
        **_tile(tile),
        "next": Word(follower),
        **_epilogue(product, behind),
    }


def _epilogue(product: GemmProduct, behind: int) -> dict[str, Entry]:
    epilogue = product.epilogue
    if epilogue is None:
        return {
            "epilogue": Symbol(""), "epilogue_args": Word(-1), "epilogue_words": 0, "epilogue_grain": 0,
            "sums_word": 0, "tile_word": 0,
        }  # fmt: skip
    is_tile = bool(epilogue.use.given)
    return {
        "epilogue": Symbol(entry_name(epilogue.use.kernel)),
        "epilogue_args": Word(behind),
        "epilogue_words": len(epilogue_arguments(product)),
        "epilogue_grain": epilogue.use.grain,
        "sums_word": epilogue.operands.index(-1) if is_tile else -1,
        "tile_word": len(epilogue.operands) + epilogue.use.given[0] if is_tile else -1,
    }


def _tile(tile: GemmTile) -> dict[str, Entry]:
    return {"tile": Symbol(tile.name), "tile_rows": tile.rows, "tile_columns": tile.columns}


def convolution_block(call: ConvolutionCall) -> list[Entry]:
    """A `DiscConvolution`, behind it the arguments of its epilogue."""
    struct, problem = abi.CONVOLUTION, call.problem
    functions = FUNCTIONS if problem.may_transform else [""] * len(FUNCTIONS)
    fields: dict[str, Entry | Sequence[Entry]] = {
        "product": laid_out(abi.DOT, _dot(call.gemm, call.tile, struct.words, -1)),
        **dict(zip(list(struct.fields)[1:], _geometry(problem), strict=False)),
        "input": Buffer(call.gemm.problem.lhs),
        "transform_patch": Symbol(functions[0]),
        "transform_weights": Symbol(functions[1]),
        "gather_patch": Symbol(functions[2]),
    }
    return [*laid_out(struct, fields), *epilogue_arguments(call.gemm)]


def _geometry(problem: ConvolutionProduct) -> Iterator[Entry]:
    """The sizes of a `DiscConvolution`, in the order of its fields; one that lacks a dimension has a first one of 1."""
    images, *space, channels = problem.input
    missing = 2 - len(space)
    yield from (images, *[ONE] * missing, *space, channels)
    for sizes in (problem.result[1:-1], problem.window, problem.strides, problem.dilations):
        yield from (*[ONE] * missing, *sizes)
    yield from (*[ZERO] * missing, *problem.padding)


def attention_block(call: AttentionCall) -> list[Entry]:
    """A `DiscAttention`, behind it the arguments of its row kernel."""
    problem, rows, causal = call.problem, call.problem.rows, call.problem.causal
    batch = [*problem.batch, *[_NO_AXIS] * (abi.ATTENTION.fields["batch"].count - len(problem.batch))]
    arguments = kernel_arguments(call.rows, call.row_operands)
    visible = [] if problem.visible is None else _visible(call, problem.visible, arguments)
    scores, weights = (i for i, number in enumerate(call.row_operands) if number < 0)
    fields: dict[str, Entry | Sequence[Entry]] = {
        "format": FORMATS.index(call.tile.format),
        "batch_rank": len(problem.batch),
        "batch": [axis.size for axis in batch],
        "query_batch": [axis.query for axis in batch],
        "key_batch": [axis.key for axis in batch],
        "value_batch": [axis.value for axis in batch],
        "result_batch": [axis.result for axis in batch],
        "m": rows.size,
        "n": problem.columns,
        "d": problem.depth,
        "w": problem.width,
        "query_m": rows.query,
        "query_d": problem.query_depth,
        "key_n": problem.key_column,
        "key_d": problem.key_depth,
        "value_n": problem.value_column,
        "value_w": problem.value_width,
        "result_m": rows.result,
        "result_w": problem.result_width,
        "query_start": problem.query.start,
        "key_start": problem.key.start,
        "value_start": problem.value.start,
        "rounds": int(problem.rounds),
        "query": Buffer(problem.query.number),
        "key": Buffer(problem.key.number),
        "value": Buffer(problem.value.number),
        "result": Buffer(call.result),
        "row": Buffer(call.scratch),
        **_tile(call.tile),
        "rows": Symbol(entry_name(call.rows.kernel)),
        "row_words": len(arguments),
        "scores": scores,
        "weights": weights,
        "bound": -1 if causal is None else len(call.row_operands) + call.rows.given[0],
        "causal_offset": ZERO if causal is None else causal.offset,
        "causal_reach": ZERO if causal is None else causal.reach,
        "magnitude": 0 if causal is None else causal.magnitude,
    }
    if visible:
        fields["bound"] = abi.VISIBLE_FOLLOWS
    return [*laid_out(abi.ATTENTION, fields), *arguments, *visible]


def _visible(call: AttentionCall, visible: Visible, arguments: list[Entry]) -> list[Entry]:
    """A `DiscVisible`. Arguments of the row kernel are changed to count all columns: so do runtimes that ignore it."""
    batch = call.problem.batch
    padding = abi.VISIBLE.fields["batch"].count - len(batch)
    first, end = (len(call.row_operands) + place for place in call.rows.given)
    arguments[first], arguments[end] = 0, call.problem.columns
    fields: dict[str, Entry | Sequence[Entry]] = {
        "batch": [*(axis.visible for axis in batch), *[ZERO] * padding],
        "m": call.problem.rows.visible,
        "first": Buffer(visible.first),
        "end": Buffer(visible.end),
        "first_word": first,
        "end_word": end,
        "magnitude": visible.magnitude,
    }
    return laid_out(abi.VISIBLE, fields)


def attention_gradient_block(call: AttentionGradientCall) -> list[Entry]:
    """A `DiscAttentionGradient`, behind it the arguments of its row kernels."""
    problem = call.problem
    padding = abi.ATTENTION_GRADIENT.fields["batch"].count - len(problem.batch)

    def matrices(of: Matrices) -> list[Entry]:
        batch: list[Entry] = [*of.batch, *[ZERO] * padding]
        fields: dict[str, Entry | Sequence[Entry]] = {"data": Buffer(of.number), "batch": batch}
        return laid_out(abi.MATRICES, {**fields, "row": of.row, "column": of.column})

    rows = _row_kernel(call.rows, call.row_operands)
    gradient = _row_kernel(call.gradient_rows, call.gradient_operands)
    fields: dict[str, Entry | Sequence[Entry]] = {
        "format": FORMATS.index(call.tile.format),
        "batch_rank": len(problem.batch),
        "batch": [*problem.batch, *[ONE] * padding],
        "m": problem.rows,
        "n": problem.columns,
        "d": problem.depth,
        "w": problem.width,
        "query": matrices(problem.query),
        "key": matrices(problem.key),
        "value": matrices(problem.value),
        "upstream": matrices(problem.upstream),
        "query_gradient": matrices(problem.query_gradient),
        "key_gradient": matrices(problem.key_gradient),
        "value_gradient": matrices(problem.value_gradient),
        **_tile(call.tile),
        "rows": laid_out(abi.ROW_KERNEL, rows),
        "gradient_rows": laid_out(abi.ROW_KERNEL, gradient),
        "buffers": call.buffers,
        "weights": call.weights,
        "row": Buffer(call.scratch),
        "visible_batch": [*problem.visible_batch, *[ZERO] * padding],
        "visible_m": problem.visible_row,
        "first": Buffer(problem.visible.first),
        "end": Buffer(problem.visible.end),
        "magnitude": problem.visible.magnitude,
        "upstream_magnitude": problem.magnitude,
    }
    arguments = kernel_arguments(call.rows, call.row_operands)
    arguments += kernel_arguments(call.gradient_rows, call.gradient_operands)
    return [*laid_out(abi.ATTENTION_GRADIENT, fields), *arguments]


def _row_kernel(use: KernelUse, operands: Sequence[int]) -> dict[str, Entry | Sequence[Entry]]:
    """A `DiscRowKernel`: which of its arguments are addresses of buffers, and which say what columns count."""
    places = [operands.index(-1 - n) if -1 - n in operands else -1 for n in range(abi.ROW_KERNEL.fields["place"].count)]
    first, end = (len(operands) + place for place in use.given)
    return {
        "kernel": Symbol(entry_name(use.kernel)),
        "words": len(kernel_arguments(use, operands)),
        "place": places,
        "first": first,
        "end": end,
    }


def entry_name(kernel: str) -> str:
    """The function by which the runtime runs a kernel."""
    return f"{kernel}_entry"
