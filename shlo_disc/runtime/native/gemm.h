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

/// C = A B by `dot.tile`. Strides may be anything; `dot.packed` may be null.
template <typename T> void run_gemm(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
