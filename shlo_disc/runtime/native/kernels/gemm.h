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

constexpr int64_t kMostProducts = 8; // of one A at once, as in transforms/fusion/products.py

} // namespace disc
