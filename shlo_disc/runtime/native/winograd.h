// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions with windows of 3 x 3 by Winograd's algorithm F(2x2, 3x3), as in Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks" (2016): 4 x 4 patches of the input and the weights are transformed so that 16 products
// of a patch's elements replace the 36 of its 2 x 2 results.
#pragma once

#include "abi.h"
#include "thread_pool.h"

#include <cstdint>

namespace disc {

constexpr int64_t kWindow = 9;     // elements of a window
constexpr int64_t kPositions = 16; // elements of a transformed one

/// Writes the transformed weights [9 * channels, n], whose columns lie together, to `target`: for each panel of columns, a packed matrix
/// [channels, columns] for each of the 16 positions, as for `pack_right`.
void pack_winograd(ThreadPool &pool, const DiscDot &weights, float *target);

/// Whether it is allowed and takes less time than a product with all windows.
bool prefers_winograd(const DiscConvolution &convolution);

void run_winograd(ThreadPool &pool, const DiscConvolution &convolution);

} // namespace disc
