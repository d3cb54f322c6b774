// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of little depth with large results, such as a weight's gradient over few rows of data.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// Whether writing C is most of the work.
bool is_outer_product(const DiscDot &dot);

/// C = A B by `dot.tile`: B is packed first, as much of it as stays in a core's cache, then C is written row by row,
/// which memory takes faster than the columns of a panel. False, and nothing done, without memory for B.
bool run_outer_product(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
