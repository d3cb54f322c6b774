// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention: two products and a row kernel between them, over blocks of rows whose scores stay in cache.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

void run_attention(ThreadPool &pool, const DiscAttention &attention);

} // namespace disc
