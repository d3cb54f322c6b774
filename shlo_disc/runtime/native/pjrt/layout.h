// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Orders of elements. Buffers have one: row-major without gaps; on the host there may be others.
#pragma once

#include "pjrt_c_api.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace disc::pjrt {

using Sizes = std::span<const int64_t>;

/// The dims of a dense layout, slowest first. Throws UNIMPLEMENTED for tiles and gaps, INVALID_ARGUMENT for what is no
/// layout of these dims. Without a layout: row-major.
std::vector<size_t> major_to_minor(const PJRT_Buffer_MemoryLayout *layout, Sizes dims, int64_t element_bytes);

/// Refuses every order but that of buffers.
void require_row_major(const PJRT_Buffer_MemoryLayout *layout, Sizes dims, int64_t element_bytes);

/// Strides in bytes of row-major elements.
std::vector<int64_t> row_major_strides(Sizes dims, int64_t element_bytes);

/// The row-major order in the words of XLA: "{1,0}".
std::string row_major_text(size_t rank);

} // namespace disc::pjrt
