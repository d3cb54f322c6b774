// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batched matrix products over the pool, each piece one single-threaded BLAS call.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

void run_dot(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
