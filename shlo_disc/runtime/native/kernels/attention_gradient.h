// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The gradients of an attention in query, key and value, over blocks of rows whose scores are computed again.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

void run_attention_gradient(ThreadPool &pool, const DiscAttentionGradient &gradient);

} // namespace disc
