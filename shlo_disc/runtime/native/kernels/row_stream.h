// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of up to three rows with a large matrix whose rows are dense: ranges of whole rows are read in order, as fast
// as memory gives them.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// Whether C = A B is such a product, of floats, that has no packed B, for a program whose vectors have 256 bits or more.
bool streams_rows(const DiscDot &dot);

/// C = A B, with an epilogue of tiles but none of whole rows. False, with nothing done, where memory ran out.
bool run_row_stream(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
