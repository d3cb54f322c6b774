// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products of any size out of generated micro-kernels.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

#include <cstdint>

namespace disc {

/// Where the rows of A come from when they do not lie in memory.
class RowSource {
public:
  virtual ~RowSource() = default;
  /// Columns [k0, k0 + depth) of `rows` rows from `row`, as `gemm::pack_rows` writes them.
  virtual void pack(int64_t row, int64_t rows, int64_t k0, int64_t depth, void *target) const = 0;
};

/// C = A B by `dot.tile`, for `dot` and the products that follow it, with their epilogues. Strides may be anything;
/// `packed` may be null. With a source, A's address and strides are 0, and the format is one of elements as they are.
void run_gemm(ThreadPool &pool, const DiscDot &dot, const RowSource *source = nullptr);

/// How many matrices the batch has.
int64_t entries_of(const DiscDot &dot);

/// Where matrix `entry` of a batch with these strides begins, in elements.
int64_t batch_offset(const DiscDot &dot, int64_t entry, const int64_t *strides);

constexpr int64_t kMostProducts = 8; // of one A at once, as in transforms/fusion/products.py

bool has_tile_epilogue(const DiscDot &dot);
bool has_row_epilogue(const DiscDot &dot);

/// The epilogue of a tile of sums: `rows` rows from `row`, counted through the batch, of the columns [column, past).
void run_tile_epilogue(const DiscDot &dot, int64_t row, int64_t rows, const void *sums, int64_t step, int64_t column,
                       int64_t past);

/// The epilogue of all rows, if it is one of whole rows.
void run_row_epilogue(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
