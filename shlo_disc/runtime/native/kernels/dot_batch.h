// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What all kernels of matrix products do alike: they go over a batch, and run what follows the sums.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"
#include "gemm_blocks.h"

#include <cstdint>

namespace disc {

/// How many matrices the batch has.
int64_t entries_of(const DiscDot &dot);

/// Where matrix `entry` of a batch with these strides begins, in elements.
int64_t batch_offset(const DiscDot &dot, int64_t entry, const int64_t *strides);

/// Whether there is an epilogue that takes tiles of sums.
bool has_tile_epilogue(const DiscDot &dot);

/// Whether there is one that takes whole rows of the result.
bool has_row_epilogue(const DiscDot &dot);

/// Columns of C, of which a tile for an epilogue begins and ends at a multiple, unless it ends with the row: where rows
/// are whole vectors, an epilogue writes whole vectors alone (epilogue_kernel.py), the widest as long as a tile's row.
constexpr int64_t kEpilogueColumns = 64;
static_assert(kEpilogueColumns * 4 % gemm::kWidestPanelBytes == 0);

/// The epilogue of a tile of sums: `rows` rows from `row`, counted through the batch, of the columns [column, past).
void run_tile_epilogue(const DiscDot &dot, int64_t row, int64_t rows, const void *sums, int64_t step, int64_t column,
                       int64_t past);

/// The epilogue of all rows, if it is one of whole rows.
void run_row_epilogue(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
