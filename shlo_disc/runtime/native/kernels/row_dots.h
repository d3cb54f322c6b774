// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of few rows with a matrix whose columns are dense, such as the transposed weights of a linear layer: each
// element of C is a product of two dense vectors, and nothing is packed.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// Whether C = A B is such a product, of floats, of rows long enough, for a program whose vectors have 256 bits or more.
bool is_row_dots(const DiscDot &dot);

/// C = A B, without what becomes of C.
void run_row_dots(ThreadPool &pool, const DiscDot &dot);

} // namespace disc
