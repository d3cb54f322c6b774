// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Right-hand sides of products in panels, as micro-kernels read them.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

#include <cstdint>

namespace disc {

/// Words of the packed form of a right-hand side of `k` words: panels of `columns`, the last one filled up with zeros.
int64_t packed_words(int64_t entries, int64_t k, int64_t n, int64_t columns);

/// Writes the packed form of B, all batch entries of it, to `target`.
void pack_right(ThreadPool &pool, const DiscDot &dot, void *target);

namespace gemm {

/// Writes panels [first, end) of B to `target`, one behind the other, those of all batch entries.
void pack_panels(ThreadPool &pool, const DiscDot &dot, int64_t first, int64_t end, void *target);

/// Matrix `entry` of the right-hand sides.
const char *right_matrix(const DiscDot &dot, int64_t entry);

/// Copies panels of some dense rows, row by row: memory is read in order, and each panel written to a place of its own,
/// `panel_step` elements behind that of the one before. The last one may have fewer than `columns`, and is filled up.
/// `width` counts the columns of all panels.
template <typename T>
void copy_panels(const T *source, int64_t step, int64_t rows, int64_t width, int64_t columns, T *target,
                 int64_t panel_step);

} // namespace gemm

} // namespace disc
