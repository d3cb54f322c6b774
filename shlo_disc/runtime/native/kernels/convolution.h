// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions in canonical form as products of windows and weights.
#pragma once

#include "core/abi.h"
#include "core/thread_pool.h"

namespace disc {

/// A product whose A, [pixels, window * channels], is gathered from the input while its blocks are packed; or Winograd's
/// algorithm, where the convolution has its transforms and the sizes make it the cheaper one.
void run_convolution(ThreadPool &pool, const DiscConvolution &convolution);

} // namespace disc
