// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products of any size out of generated micro-kernels.
#pragma once

#include "abi.h"
#include "thread_pool.h"

#include <cstdint>

namespace disc {

/// Elements of the packed form of a right-hand side: panels of `columns`, the last one filled up with zeros.
int64_t packed_elements(int64_t entries, int64_t k, int64_t n, int64_t columns);

/// Writes the packed form of B, all batch entries of it, to `target`.
template <typename T> void pack_right(ThreadPool &pool, const DiscDot &dot, T *target);

/// Where the rows of A come from when they do not lie in memory.
template <typename T> class RowSource {
public:
  virtual ~RowSource() = default;
  /// Columns [k0, k0 + depth) of `rows` rows from `row`, as `gemm::pack_rows` writes them.
  virtual void pack(int64_t row, int64_t rows, int64_t k0, int64_t depth, T *target) const = 0;
};

/// C = A B by `dot.tile`. Strides may be anything; `dot.packed` may be null. With a source, A's address and strides are 0.
template <typename T> void run_gemm(ThreadPool &pool, const DiscDot &dot, const RowSource<T> *source = nullptr);

} // namespace disc
