// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product with what follows it: by one kernel of the program's, or by a library's product and a kernel behind it.
#pragma once

#include "core/abi.h"

#include <cstdint>
#include <optional>

namespace disc::cuda {

/// What products take their factors as.
enum class ProductKind { f32, tf32, f64, halves, bytes };

/// Whether one kernel is better, for a product whose sums have so many bytes each. What it saves is a launch, and
/// writing and reading the sums; what it costs is that the program's kernels multiply slower. `fuses_products`: what the
/// user has said, if anything. The rates are rough ones, between those of an A100 and an H100, and not measured.
bool is_fused(const DiscProduct &product, ProductKind kind, int64_t sum_bytes, std::optional<bool> fuses_products);

} // namespace disc::cuda
