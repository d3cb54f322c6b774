// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The binary interface between compiled programs and this runtime. The order of fields is the interface.
#pragma once

#include <cstdint>

extern "C" {

struct DiscRuntime;

/// One range of a parallel loop: runs iterations [begin, end). `args` are 8-byte words, read-only.
using DiscKernel = void (*)(const int64_t *args, int64_t begin, int64_t end);

/// One tile of a product, C (+)= A B, as `lowering_cpu/gemm_kernel.py` describes it.
using DiscTile = void (*)(int64_t rows, const void *a, const void *b, int64_t b_step, void *c, int64_t c_step,
                          int64_t k, int64_t accumulate);

/// C[batch, m, n] = sum_k A[batch, m, k] * B[batch, k, n]. All strides count elements.
struct DiscDot {
  int64_t dtype;      // 0 = f32, 1 = f64
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
};

struct DiscRuntime {
  void (*launch)(const DiscRuntime *, DiscKernel kernel, const int64_t *args, int64_t total, int64_t grain);
  void (*dot)(const DiscRuntime *, const DiscDot *dot);
  void *opaque;
  /// Runs the program's library call `index`. `words`: for each operand, then for each result, its address and its dims.
  void (*call)(const DiscRuntime *, int64_t index, const int64_t *words);
};

/// Fills `words` for one set of symbol values; 0, or 1 + the index of the first check that failed.
using DiscPlan = int64_t (*)(const int64_t *symbols, int64_t *words);

/// Runs the program at a planned shape. Never allocates, never fails.
using DiscRun = void (*)(const DiscRuntime *rt, void *const *buffers, const int64_t *words, void *arena);
}
