# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The binary interface between compiled programs and the runtime: its structures and functions, in one table.

`native/core/abi.h` is generated from it, and the compiler lays out argument blocks by it. Every field takes whole words
of 8 bytes; the order of fields is the interface.

    python -m shlo_disc.runtime.abi > shlo_disc/runtime/native/core/abi.h
"""

from __future__ import annotations

from collections.abc import Sequence

from shlo_disc.runtime.c_declarations import Fields, Function, Struct, comment, field_line

KERNEL = Function(
    "DiscKernel",
    "One range of a parallel loop: runs iterations [begin, end). `args` are words, read-only.",
    (("const int64_t *", "args"), ("int64_t", "begin"), ("int64_t", "end")),
)

TILE = Function(
    "DiscTile",
    "One tile of a product, C (+)= A B, as `lowering_cpu/micro_kernels/gemm_kernel.py` describes it.",
    (
        ("int64_t", "rows"), ("const void *", "a"), ("const void *", "b"), ("int64_t", "b_step"), ("void *", "c"),
        ("int64_t", "c_step"), ("int64_t", "k"), ("int64_t", "accumulate"), ("const void *", "fetch"),
        ("int64_t", "fetch_step"),
    ),
)  # fmt: skip

TRANSFORM_PATCH = Function(
    "DiscTransformPatch",
    "6 x 6 elements of `count` channels from `offset` to 36 places, `step` elements apart: B' d B of F(4x4, 3x3), as "
    "`lowering_cpu/micro_kernels/winograd_kernel.py` describes it.",
    (
        ("const float *const *", "pixels"), ("int64_t", "offset"), ("int64_t", "count"), ("float *", "target"),
        ("int64_t", "step"),
    ),
)  # fmt: skip

TRANSFORM_WEIGHTS = Function(
    "DiscTransformWeights",
    "3 x 3 weights, `step` elements apart, of `width` features to 36 places, `target_step` elements apart, with zeros "
    "up to `columns`: G g G'.",
    (
        ("const float *", "weights"), ("int64_t", "step"), ("int64_t", "width"), ("int64_t", "columns"),
        ("float *", "target"), ("int64_t", "target_step"),
    ),
)  # fmt: skip

GATHER_PATCH = Function(
    "DiscGatherPatch",
    "36 sums, `step` elements apart, of `width` features to 4 x 4 pixels: A' m A.",
    (("const float *", "sums"), ("int64_t", "step"), ("int64_t", "width"), ("float *const *", "pixels")),
)

DOT = Struct(
    "DiscDot",
    "C[batch, m, n] = sum_k A[batch, m, k] * B[batch, k, n]. All strides count elements.",
    (
        Fields("int64_t", "format", "as in gemm_formats.h"),
        Fields("int64_t", "batch_rank", "0..4"),
        Fields("int64_t", "batch[4]"),
        Fields("int64_t", "a_batch[4], b_batch[4], c_batch[4]"),
        Fields("int64_t", "m, n, k"),
        Fields("int64_t", "a_m, a_k, b_k, b_n, c_m, c_n"),
        Fields("const void *", "a"),
        Fields("const void *", "b"),
        Fields("void *", "c"),
        Fields("const void *", "packed", "B as `pack_right` writes it, or null"),
        Fields("DiscTile", "tile"),
        Fields("int64_t", "tile_rows, tile_columns"),
        Fields(
            "const DiscDot *",
            "next",
            "another product of the same A (dtype, batch sizes, m, k and A's strides are the same), or null",
        ),
        Fields("DiscKernel", "epilogue", "what becomes of C, or null"),
        Fields("const int64_t *", "epilogue_args"),
        Fields("int64_t", "epilogue_words, epilogue_grain"),
        Fields(
            "int64_t",
            "sums_word, tile_word",
            "An epilogue of tiles takes rows of C from memory of the runtime's own, and C is null: the word "
            "`sums_word` of its arguments is to be the address of the first element, `tile_word` and those behind it "
            "the number of elements between rows, the first column and the one past the last. One of whole rows "
            "(both -1) reads C.",
        ),
    ),
)

CONVOLUTION = Struct(
    "DiscConvolution",
    "A convolution [images, height, width, channels] by [window_height, window_width, channels, features]. The first "
    "window begins `row_padding` and `column_padding` pixels outside of the input, where all elements are 0. `product` "
    "has the weights, the result, and one row for each of its pixels.",
    (
        Fields("DiscDot", "product"),
        Fields("int64_t", "images, height, width, channels"),
        Fields("int64_t", "result_height, result_width"),
        Fields("int64_t", "window_height, window_width"),
        Fields("int64_t", "row_stride, column_stride, row_dilation, column_dilation"),
        Fields("int64_t", "row_padding, column_padding"),
        Fields("const void *", "input"),
        Fields("DiscTransformPatch", "transform_patch", "null where Winograd's algorithm is not to be used"),
        Fields("DiscTransformWeights", "transform_weights"),
        Fields("DiscGatherPatch", "gather_patch"),
    ),
    nested=(DOT,),
)

ATTENTION = Struct(
    "DiscAttention",
    "For each batch entry: result[m, w] = rows(query[m, d] key[d, n])[m, n] value[n, w], where `rows` is a kernel "
    "whose work items are rows of m x n scores. All strides count elements. The row kernel's arguments follow.",
    (
        Fields("int64_t", "format", "of floats, as in gemm_formats.h"),
        Fields("int64_t", "batch_rank", "0..5"),
        Fields("int64_t", "batch[5]"),
        Fields("int64_t", "query_batch[5], key_batch[5], value_batch[5], result_batch[5]"),
        Fields("int64_t", "m, n, d, w"),
        Fields("int64_t", "query_m, query_d, key_n, key_d, value_n, value_w, result_m, result_w"),
        Fields("int64_t", "query_start, key_start, value_start", "the first element"),
        Fields("int64_t", "rounds", "1: the result is bf16, rounded from sums"),
        Fields("const void *", "query, key, value"),
        Fields("void *", "result"),
        Fields("void *", "row", "scratch for one row of scores, and one of weights where these have another type"),
        Fields("DiscTile", "tile"),
        Fields("int64_t", "tile_rows, tile_columns"),
        Fields("DiscKernel", "rows"),
        Fields("int64_t", "row_words", "of the row kernel's arguments; at most 256"),
        Fields(
            "int64_t",
            "scores, weights",
            "which of them are the addresses that `rows` reads the scores from and writes its result to",
        ),
        Fields(
            "int64_t",
            "bound",
            "which of them says how many columns count, or -1: only those up to row + causal_offset do, if that is not "
            "negative, and the others' weights are 0, while no score is larger than `magnitude`. -2: a DiscVisible "
            "follows the row kernel's arguments",
        ),
        Fields("int64_t", "causal_offset"),
        Fields("int64_t", "causal_reach", "the largest number that a position is part of, which has 32 bits"),
        Fields("int64_t", "magnitude"),
    ),
)

VISIBLE_FOLLOWS = -2
"""The `bound` of a `DiscAttention` behind which a `DiscVisible` follows."""

VISIBLE = Struct(
    "DiscVisible",
    "Which columns each row of an attention sees: all others' weights are 0 where it sees one, while no score is "
    "larger than `magnitude`. A row whose end is not behind its first column sees none. Strides count elements.",
    (
        Fields("int64_t", "batch[5]"),
        Fields("int64_t", "m"),
        Fields("const int32_t *", "first, end"),
        Fields(
            "int64_t",
            "first_word, end_word",
            "which of the row kernel's arguments say the first column that counts, and the one behind the last",
        ),
        Fields("int64_t", "magnitude"),
    ),
)

MATRICES = Struct(
    "DiscMatrices",
    "Matrices, one for each entry of a batch. Strides count elements.",
    (
        Fields("const void *", "data"),
        Fields("int64_t", "batch[5]"),
        Fields("int64_t", "row, column"),
    ),
)

ROW_KERNEL = Struct(
    "DiscRowKernel",
    "A kernel whose work items are rows, some of whose buffers are a thread's.",
    (
        Fields("DiscKernel", "kernel"),
        Fields("int64_t", "words", "of its arguments; at most 256"),
        Fields("int64_t", "place[8]", "which of them is the address of each buffer of a thread; -1 if none is"),
        Fields("int64_t", "first, end", "which of them say the first column that counts, and the one behind the last"),
    ),
)

ATTENTION_GRADIENT = Struct(
    "DiscAttentionGradient",
    "The gradients of an attention, for each batch entry. Buffers are of rows of m x n: 0 is query[m, d] key[n, d]', "
    "from which `rows` computes others, one of which has the weights; the last but one is upstream[m, w] value[n, w]', "
    "from which `gradient_rows` computes the last one, the gradients of the scores. query_gradient[m, d] = last key, "
    "key_gradient[n, d] = last' query, value_gradient[n, w] = weights' upstream. The arguments of both kernels follow.",
    (
        Fields("int64_t", "format", "of floats, as in gemm_formats.h: one that is plain"),
        Fields("int64_t", "batch_rank", "0..5"),
        Fields("int64_t", "batch[5]"),
        Fields("int64_t", "m, n, d, w"),
        Fields("DiscMatrices", "query, key, value, upstream, query_gradient, key_gradient, value_gradient"),
        Fields("DiscTile", "tile"),
        Fields("int64_t", "tile_rows, tile_columns"),
        Fields("DiscRowKernel", "rows, gradient_rows"),
        Fields("int64_t", "buffers", "3..8"),
        Fields("int64_t", "weights", "which buffer has them"),
        Fields("void *", "row", "scratch for a row of each buffer"),
        Fields("int64_t", "visible_batch[5]"),
        Fields("int64_t", "visible_m"),
        Fields("const int32_t *", "first, end", "which columns each row sees, as in DiscVisible"),
        Fields("int64_t", "magnitude", "of scores, up to which what is hidden is exactly 0"),
        Fields("int64_t", "upstream_magnitude", "of the last buffer but one, up to which that is so"),
    ),
    nested=(MATRICES, ROW_KERNEL),
)

BATCH_AXIS = Struct(
    "DiscBatchAxis",
    "A size of a batch of matrices, and the elements from one to the next in each of A, B and C.",
    (Fields("int64_t", "size, a, b, c"),),
)

PRODUCT = Struct(
    "DiscProduct",
    "C[batch, m, n] = sum_k A[batch, m, k] * B[batch, k, n] on a device that is apart from the processor. Strides "
    "count elements; C's along n is 1. The words before those of axes that are none are the parameters of the kernel, "
    "unless `args` has them.",
    (
        Fields("const void *", "a"),
        Fields("const void *", "b"),
        Fields("void *", "c"),
        Fields("int64_t", "m, n, k"),
        Fields("int64_t", "a_m, a_k, b_k, b_n, c_m"),
        Fields("DiscBatchAxis", "batch[4]"),
        Fields("int64_t", "batch_rank", "0..4"),
        Fields("int64_t", "format", "of the elements, as in cuda/blas.cpp"),
        Fields("int64_t", "precision", "of f32: 0 for all bits, 1 for TF32's where the device may, 2 for TF32's"),
        Fields("int64_t", "kernel, blocks", "the program's kernel, by number, for where no library takes it"),
        Fields(
            "const int64_t *",
            "args, epilogue_args",
            "Where something follows, the parameters of `kernel`, which does it as well and does not write C, and of "
            "`epilogue`, the kernel that does it with C. Else null, or the parameters of a kernel that has `parts`.",
        ),
        Fields("int64_t", "words, epilogue_words", "how many these are"),
        Fields("int64_t", "epilogue, epilogue_blocks", "-1 where nothing follows"),
        Fields(
            "void *",
            "library_result",
            "where a library may write the sums plus `bias`, an element for each n, in `library_format`, and nothing "
            "else is to do; or null",
        ),
        Fields("const void *", "bias", "or null"),
        Fields("int64_t", "library_format"),
        Fields(
            "int64_t",
            "parts",
            "of the depth that blocks of `kernel` have; 0 where each has all of it. Not there in programs of earlier "
            "versions, whose `args` lie here",
        ),
    ),
    nested=(BATCH_AXIS,),
)

STRUCTS = {
    struct.name: struct
    for struct in (DOT, CONVOLUTION, ATTENTION, VISIBLE, MATRICES, ROW_KERNEL, ATTENTION_GRADIENT, BATCH_AXIS, PRODUCT)
}
FUNCTIONS = (KERNEL, TILE, TRANSFORM_PATCH, TRANSFORM_WEIGHTS, GATHER_PATCH)

_RUNTIME = (("const DiscRuntime *", "runtime"),)
_COMMAND = (("int64_t", "command"),)

RUNTIME: Sequence[Function | Fields] = (
    Function(
        "launch",
        "Runs a kernel over [0, total), in ranges of at least `grain`.",
        (
            *_RUNTIME, ("DiscKernel", "kernel"), ("const int64_t *", "args"), ("int64_t", "total"),
            ("int64_t", "grain"), *_COMMAND,
        ),
    ),
    Function("dot", "", (*_RUNTIME, ("const DiscDot *", "dot"), *_COMMAND)),
    Fields("void *", "opaque"),
    Function(
        "call",
        "Runs the program's library call `index`. `words`: for each operand, then for each result, its address and its "
        "dims.",
        (*_RUNTIME, ("int64_t", "index"), ("const int64_t *", "words"), *_COMMAND),
    ),
    Function("convolution", "", (*_RUNTIME, ("const DiscConvolution *", "convolution"), *_COMMAND)),
    Function("attention", "", (*_RUNTIME, ("const DiscAttention *", "attention"), *_COMMAND)),
    Function(
        "enqueue",
        "Gives a kernel of the program's to its device: so many blocks of as many threads as the artifact says. `args` "
        "are its parameters.",
        (
            *_RUNTIME, ("int64_t", "kernel"), ("const int64_t *", "args"), ("int64_t", "words"), ("int64_t", "blocks"),
            *_COMMAND,
        ),
    ),
    Function(
        "copy",
        "Copies bytes on the device.",
        (*_RUNTIME, ("void *", "to"), ("const void *", "from"), ("int64_t", "bytes"), *_COMMAND),
    ),
    Function(
        "clear",
        "Writes zeros on the device.",
        (*_RUNTIME, ("void *", "to"), ("int64_t", "bytes"), *_COMMAND),
    ),
    Function(
        "read",
        "Waits for the work before, and brings up to 8 bytes from the device.",
        (*_RUNTIME, ("const void *", "from"), ("int64_t", "bytes"), ("void *", "to"), *_COMMAND),
    ),
    Function(
        "product",
        "Gives a matrix product to the device: to a library there, or to the program's kernel.",
        (*_RUNTIME, ("const DiscProduct *", "product"), *_COMMAND),
    ),
    Function(
        "trip",
        "Called now and then in the trips of a loop on processors, unless it is null. May end the run.",
        _RUNTIME,
    ),
    Function(
        "has_ended",
        "Called now and then in the trips of a loop inside of a kernel on processors, by whichever thread is there, "
        "unless it is null. Not 0: nobody will read what the kernel writes, and it returns.",
        _RUNTIME,
        "int64_t",
    ),
    Function("attention_gradient", "", (*_RUNTIME, ("const DiscAttentionGradient *", "gradient"), *_COMMAND)),
)  # fmt: skip
"""The fields of `DiscRuntime`: the functions of the runtime that a program calls, and what is the runtime's own.

Programs for CPUs call the first ones and the last three, those for devices that are apart from the processor the
others, and `call` for collectives.
"""

RUNTIME_FUNCTIONS = {line.name: line for line in RUNTIME if isinstance(line, Function)}

RUNTIME_CALLS = {line.name: word for word, line in enumerate(RUNTIME) if isinstance(line, Function)}
"""The word of `DiscRuntime` that holds each function."""


def header() -> str:
    """The text of `native/core/abi.h`."""
    first, *others = FUNCTIONS
    runtime = "\n".join(
        [
            *comment(
                "What a program calls. `command` is the number of the call in the program's text, for whoever wants to "
                "tell them apart.",
                "",
            ),
            "struct DiscRuntime {",
            *map(_runtime_line, RUNTIME),
            "};",
        ]
    )
    parts = [
        "struct DiscRuntime;\nstruct DiscDot;",
        first.declaration(),
        *(function.declaration() for function in others),
        *(struct.declaration() for struct in STRUCTS.values()),
        runtime,
        "/// Fills `words` for one set of symbol values; 0, or 1 + the index of the first check that failed.\n"
        "using DiscPlan = int64_t (*)(const int64_t *symbols, int64_t *words);",
        "/// Runs the program at a planned shape. Never allocates, never fails.\n"
        "using DiscRun = void (*)(const DiscRuntime *rt, void *const *buffers, const int64_t *words, void *arena);",
    ]
    return _FRAME.format(body="\n\n".join(parts))


_FRAME = """\
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The binary interface between compiled programs and this runtime. Generated from shlo_disc/runtime/abi.py.
#pragma once

#include <cstdint>

extern "C" {{

{body}
}}
"""


def _runtime_line(line: Function | Fields) -> str:
    if isinstance(line, Fields):
        return field_line(line)
    return "\n".join([*comment(line.text, "  "), *line.signature(f"  {line.result} (*{line.name})(")])


if __name__ == "__main__":
    print(header(), end="")
