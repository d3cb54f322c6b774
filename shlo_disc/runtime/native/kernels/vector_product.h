// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of a vector and a matrix, by BLAS where there is one.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// The product that has C' = B' A' for its result.
DiscDot transposed(const DiscDot &dot);

/// Whether A or B is a vector of floats, and B is not packed.
bool is_vector_product(const DiscDot &dot);

/// C = A B, without what becomes of C.
void run_vector_product(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
