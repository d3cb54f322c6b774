// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions with windows of 3 x 3 by Winograd's algorithm F(4x4, 3x3), as in Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2016): 6 x 6 patches of the input and the weights are transformed so that 36 products
// of a patch's elements replace the 144 of its 4 x 4 results.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// Whether it is allowed and takes less time than a product with all windows.
bool prefers_winograd(const DiscConvolution &convolution);

void run_winograd(ThreadPool &pool, const DiscConvolution &convolution);

} // namespace disc
