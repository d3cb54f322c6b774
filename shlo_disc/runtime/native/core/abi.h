// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The binary interface between compiled programs and this runtime. Generated from shlo_disc/runtime/abi.py.
#pragma once

#include <cstdint>

extern "C" {

struct DiscRuntime;
struct DiscDot;

/// One range of a parallel loop: runs iterations [begin, end). `args` are words, read-only.
using DiscKernel = void (*)(const int64_t *args, int64_t begin, int64_t end);

/// One tile of a product, C (+)= A B, as `lowering_cpu/micro_kernels/gemm_kernel.py` describes it.
using DiscTile = void (*)(int64_t rows, const void *a, const void *b, int64_t b_step, void *c, int64_t c_step,
                          int64_t k, int64_t accumulate, const void *fetch, int64_t fetch_step);

/// 6 x 6 elements of `count` channels from `offset` to 36 places, `step` elements apart: B' d B of F(4x4, 3x3), as
/// `lowering_cpu/micro_kernels/winograd_kernel.py` describes it.
using DiscTransformPatch = void (*)(const float *const *pixels, int64_t offset, int64_t count, float *target,
                                    int64_t step);

/// 3 x 3 weights, `step` elements apart, of `width` features to 36 places, `target_step` elements apart, with zeros up
/// to `columns`: G g G'.
using DiscTransformWeights = void (*)(const float *weights, int64_t step, int64_t width, int64_t columns, float *target,
                                      int64_t target_step);

/// 36 sums, `step` elements apart, of `width` features to 4 x 4 pixels: A' m A.
using DiscGatherPatch = void (*)(const float *sums, int64_t step, int64_t width, float *const *pixels);

/// C[batch, m, n] = sum_k A[batch, m, k] * B[batch, k, n]. All strides count elements.
struct DiscDot {
  int64_t format; // as in gemm_formats.h
  int64_t batch_rank; // 0..4
  int64_t batch[4];
  int64_t a_batch[4], b_batch[4], c_batch[4];
  int64_t m, n, k;
  int64_t a_m, a_k, b_k, b_n, c_m, c_n;
  const void *a;
  const void *b;
  void *c;
  const void *packed; // B as `pack_right` writes it, or null
  DiscTile tile;
  int64_t tile_rows, tile_columns;
  const DiscDot *next; // another product of the same A (dtype, batch sizes, m, k and A's strides are the same), or null
  DiscKernel epilogue; // what becomes of C, or null
  const int64_t *epilogue_args;
  int64_t epilogue_words, epilogue_grain;
  /// An epilogue of tiles takes rows of C from memory of the runtime's own, and C is null: the word `sums_word` of its
  /// arguments is to be the address of the first element, `tile_word` and those behind it the number of elements
  /// between rows, the first column and the one past the last. One of whole rows (both -1) reads C.
  int64_t sums_word, tile_word;
};

/// A convolution [images, height, width, channels] by [window_height, window_width, channels, features]. The first
/// window begins `row_padding` and `column_padding` pixels outside of the input, where all elements are 0. `product`
/// has the weights, the result, and one row for each of its pixels.
struct DiscConvolution {
  DiscDot product;
  int64_t images, height, width, channels;
  int64_t result_height, result_width;
  int64_t window_height, window_width;
  int64_t row_stride, column_stride, row_dilation, column_dilation;
  int64_t row_padding, column_padding;
  const void *input;
  DiscTransformPatch transform_patch; // null where Winograd's algorithm is not to be used
  DiscTransformWeights transform_weights;
  DiscGatherPatch gather_patch;
};

/// For each batch entry: result[m, w] = rows(query[m, d] key[d, n])[m, n] value[n, w], where `rows` is a kernel whose
/// work items are rows of m x n scores. All strides count elements. The row kernel's arguments follow.
struct DiscAttention {
  int64_t format; // of floats, as in gemm_formats.h
  int64_t batch_rank; // 0..5
  int64_t batch[5];
  int64_t query_batch[5], key_batch[5], value_batch[5], result_batch[5];
  int64_t m, n, d, w;
  int64_t query_m, query_d, key_n, key_d, value_n, value_w, result_m, result_w;
  int64_t query_start, key_start, value_start; // the first element
  int64_t rounds; // 1: the result is bf16, rounded from sums
  const void *query, *key, *value;
  void *result;
  void *row; // scratch for one row of scores, and one of weights where these have another type
  DiscTile tile;
  int64_t tile_rows, tile_columns;
  DiscKernel rows;
  int64_t row_words; // of the row kernel's arguments; at most 256
  int64_t scores, weights; // which of them are the addresses that `rows` reads the scores from and writes its result to
  /// which of them says how many columns count, or -1: only those up to row + causal_offset do, if that is not
  /// negative, and the others' weights are 0, while no score is larger than `magnitude`. -2: a DiscVisible follows the
  /// row kernel's arguments
  int64_t bound;
  int64_t causal_offset;
  int64_t causal_reach; // the largest number that a position is part of, which has 32 bits
  int64_t magnitude;
};

/// Which columns each row of an attention sees: all others' weights are 0 where it sees one, while no score is larger
/// than `magnitude`. A row whose end is not behind its first column sees none. Strides count elements.
struct DiscVisible {
  int64_t batch[5];
  int64_t m;
  const int32_t *first, *end;
  /// which of the row kernel's arguments say the first column that counts, and the one behind the last
  int64_t first_word, end_word;
  int64_t magnitude;
};

/// Matrices, one for each entry of a batch. Strides count elements.
struct DiscMatrices {
  const void *data;
  int64_t batch[5];
  int64_t row, column;
};

/// A kernel whose work items are rows, some of whose buffers are a thread's.
struct DiscRowKernel {
  DiscKernel kernel;
  int64_t words; // of its arguments; at most 256
  int64_t place[8]; // which of them is the address of each buffer of a thread; -1 if none is
  int64_t first, end; // which of them say the first column that counts, and the one behind the last
};

/// The gradients of an attention, for each batch entry. Buffers are of rows of m x n: 0 is query[m, d] key[n, d]', from
/// which `rows` computes others, one of which has the weights; the last but one is upstream[m, w] value[n, w]', from
/// which `gradient_rows` computes the last one, the gradients of the scores. query_gradient[m, d] = last key,
/// key_gradient[n, d] = last' query, value_gradient[n, w] = weights' upstream. The arguments of both kernels follow.
struct DiscAttentionGradient {
  int64_t format; // of floats, as in gemm_formats.h: one that is plain
  int64_t batch_rank; // 0..5
  int64_t batch[5];
  int64_t m, n, d, w;
  DiscMatrices query, key, value, upstream, query_gradient, key_gradient, value_gradient;
  DiscTile tile;
  int64_t tile_rows, tile_columns;
  DiscRowKernel rows, gradient_rows;
  int64_t buffers; // 3..8
  int64_t weights; // which buffer has them
  void *row; // scratch for a row of each buffer
  int64_t visible_batch[5];
  int64_t visible_m;
  const int32_t *first, *end; // which columns each row sees, as in DiscVisible
  int64_t magnitude; // of scores, up to which what is hidden is exactly 0
  int64_t upstream_magnitude; // of the last buffer but one, up to which that is so
};

/// A size of a batch of matrices, and the elements from one to the next in each of A, B and C.
struct DiscBatchAxis {
  int64_t size, a, b, c;
};

/// C[batch, m, n] = sum_k A[batch, m, k] * B[batch, k, n] on a device that is apart from the processor. Strides count
/// elements; C's along n is 1. The words before those of axes that are none are the parameters of the kernel, unless
/// `args` has them.
struct DiscProduct {
  const void *a;
  const void *b;
  void *c;
  int64_t m, n, k;
  int64_t a_m, a_k, b_k, b_n, c_m;
  DiscBatchAxis batch[4];
  int64_t batch_rank; // 0..4
  int64_t format; // of the elements, as in cuda/blas.cpp
  int64_t precision; // of f32: 0 for all bits, 1 for TF32's where the device may, 2 for TF32's
  int64_t kernel, blocks; // the program's kernel, by number, for where no library takes it
  /// Where something follows, the parameters of `kernel`, which does it as well and does not write C, and of
  /// `epilogue`, the kernel that does it with C. Else null, or the parameters of a kernel that has `parts`.
  const int64_t *args, *epilogue_args;
  int64_t words, epilogue_words; // how many these are
  int64_t epilogue, epilogue_blocks; // -1 where nothing follows
  /// where a library may write the sums plus `bias`, an element for each n, in `library_format`, and nothing else is to
  /// do; or null
  void *library_result;
  const void *bias; // or null
  int64_t library_format;
  /// of the depth that blocks of `kernel` have; 0 where each has all of it. Not there in programs of earlier versions,
  /// whose `args` lie here
  int64_t parts;
};

/// What a program calls. `command` is the number of the call in the program's text, for whoever wants to tell them
/// apart.
struct DiscRuntime {
  /// Runs a kernel over [0, total), in ranges of at least `grain`.
  void (*launch)(const DiscRuntime *runtime, DiscKernel kernel, const int64_t *args, int64_t total, int64_t grain,
                 int64_t command);
  void (*dot)(const DiscRuntime *runtime, const DiscDot *dot, int64_t command);
  void *opaque;
  /// Runs the program's library call `index`. `words`: for each operand, then for each result, its address and its
  /// dims.
  void (*call)(const DiscRuntime *runtime, int64_t index, const int64_t *words, int64_t command);
  void (*convolution)(const DiscRuntime *runtime, const DiscConvolution *convolution, int64_t command);
  void (*attention)(const DiscRuntime *runtime, const DiscAttention *attention, int64_t command);
  /// Gives a kernel of the program's to its device: so many blocks of as many threads as the artifact says. `args` are
  /// its parameters.
  void (*enqueue)(const DiscRuntime *runtime, int64_t kernel, const int64_t *args, int64_t words, int64_t blocks,
                  int64_t command);
  /// Copies bytes on the device.
  void (*copy)(const DiscRuntime *runtime, void *to, const void *from, int64_t bytes, int64_t command);
  /// Writes zeros on the device.
  void (*clear)(const DiscRuntime *runtime, void *to, int64_t bytes, int64_t command);
  /// Waits for the work before, and brings up to 8 bytes from the device.
  void (*read)(const DiscRuntime *runtime, const void *from, int64_t bytes, void *to, int64_t command);
  /// Gives a matrix product to the device: to a library there, or to the program's kernel.
  void (*product)(const DiscRuntime *runtime, const DiscProduct *product, int64_t command);
  /// Called now and then in the trips of a loop on processors, unless it is null. May end the run.
  void (*trip)(const DiscRuntime *runtime);
  /// Called now and then in the trips of a loop inside of a kernel on processors, by whichever thread is there, unless
  /// it is null. Not 0: nobody will read what the kernel writes, and it returns.
  int64_t (*has_ended)(const DiscRuntime *runtime);
  void (*attention_gradient)(const DiscRuntime *runtime, const DiscAttentionGradient *gradient, int64_t command);
};

/// Fills `words` for one set of symbol values; 0, or 1 + the index of the first check that failed.
using DiscPlan = int64_t (*)(const int64_t *symbols, int64_t *words);

/// Runs the program at a planned shape. Never allocates, never fails.
using DiscRun = void (*)(const DiscRuntime *rt, void *const *buffers, const int64_t *words, void *arena);
}
