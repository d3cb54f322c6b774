// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product with what follows it: by one kernel of the program's, or by a library's product and a kernel behind it.
#pragma once

#include "core/abi.h"

#include <cstdint>

namespace disc::cuda {

/// What products take their factors as.
enum class ProductKind { f32, tf32, f64, halves, bytes };

/// The kernel of the program's that would do both: whether it is told tensor maps, and the GPU's multiprocessors.
struct ProductKernel {
  bool by_maps;
  double processors;
};

/// How many parts of the depth blocks of the program's kernel have; 0 where each has all of it.
int64_t parts_of(const DiscProduct &product);

/// Whether one kernel is better, for a product whose sums have so many bytes each. What it saves is a launch, and
/// writing and reading the sums; what it costs is that the program's kernels multiply slower, and much slower where
/// there are fewer tiles of a result than multiprocessors, the depth is large, and it is not cut into parts.
bool is_fused(const DiscProduct &product, ProductKind kind, int64_t sum_bytes, const ProductKernel &kernel);

} // namespace disc::cuda
