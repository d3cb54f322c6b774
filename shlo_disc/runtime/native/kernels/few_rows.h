// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of few rows, such as those of decoding: the other operand is read once, in order, and nothing is packed.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// Whether C = A B is such a product, of floats, for a program whose vectors have 256 bits or more. Up to 18 rows where
/// B's columns are dense, as of transposed weights, up to `most_rows_in_place` where its rows are.
bool has_few_rows(const DiscDot &dot);

/// The most rows of A whose product reads B where it lies in the time of one with a packed B, which has to be compared
/// first with what was packed.
int64_t most_rows_in_place(const DiscDot &dot);

/// Whether B's columns are dense and A's rows so few that a packed B takes little less time.
bool has_few_dots(const DiscDot &dot);

/// C = A B, or what an epilogue of tiles makes of it; not what one of rows does.
void run_few_rows(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
