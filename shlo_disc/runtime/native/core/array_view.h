// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements of one argument lie, whatever kind of object the caller passed.
#pragma once

#include "dtype.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace disc {

class Device;

/// An array as rows of contiguous bytes, each so many bytes behind the one before.
struct Rows {
  int64_t count = 0, bytes = 0, step = 0;
};

struct ArrayView {
  const char *data = nullptr;
  const Device *device = nullptr; // whose memory it is; null: the host's
  DType dtype = DType::f32;
  bool contiguous = true;       // C order without gaps
  bool byte_swapped = false;    // not in this machine's byte order
  std::vector<int64_t> strides; // bytes; empty when contiguous

  /// Whether code of the processor may read the elements where they lie.
  bool usable_in_place() const {
    return device == nullptr && contiguous && !byte_swapped &&
           reinterpret_cast<uintptr_t>(data) % info(dtype).alignment() == 0;
  }
};

/// Number of bytes of a contiguous array; -1 when they do not fit 64 bits.
int64_t byte_count(const int64_t *shape, size_t rank, int64_t element_bytes);

/// Whether strides in bytes describe C order without gaps; sizes of one and empty arrays have no order.
bool is_contiguous(const int64_t *shape, const int64_t *strides, size_t rank, int64_t element_bytes);

/// The rows of an array; none where they are not at one distance, overlap, or have another byte order.
std::optional<Rows> rows_of(const ArrayView &view, const int64_t *shape, size_t rank);

/// Copies the elements in C order and in this machine's byte order to `destination`.
void copy_contiguous(const ArrayView &view, const int64_t *shape, size_t rank, char *destination);

} // namespace disc
