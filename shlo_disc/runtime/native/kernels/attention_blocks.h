// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an attention and its gradient share: memory of a thread, magnitudes of matrices, and columns that count.
#pragma once

#include "core/abi.h"
#include "core/aligned.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace disc {

constexpr int64_t kMostRowWords = 256;
constexpr double kRounding = 1.01; // a sum of products is larger than it should be by less than this factor
constexpr size_t kAlignment = 64;

/// Those from `first` on, in front of `end`.
struct Columns {
  int64_t first, end;
};

/// Memory of a thread, kept for its next block and grown where that needs more; null where there is none.
inline char *thread_memory(size_t bytes) {
  thread_local AlignedMemory own;
  thread_local size_t size = 0;
  if (size < bytes) {
    own.replace(bytes);
    size = own.address() == nullptr ? 0 : bytes;
  }
  return own.address();
}

/// The largest magnitude of `count` elements; infinity or NaN if one of them is, because their bits are the largest.
template <typename T> T largest(const T *elements, int64_t step, int64_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits = std::bit_cast<Bits>(elements[i * step]) & std::numeric_limits<Bits>::max();
    found = bits > found ? bits : found;
  }
  return std::bit_cast<T>(found);
}

/// The same of a matrix, infinity where an element is not finite.
template <typename T>
T largest(const T *elements, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step) {
  if (column_step != 1 && row_step == 1)
    return largest(elements, columns, column_step, rows, row_step);
  T found = 0;
  for (int64_t row = 0; row < rows; ++row) {
    T other = largest(elements + row * row_step, column_step, columns);
    found = std::isfinite(other) ? std::max(found, other) : std::numeric_limits<T>::infinity();
  }
  return found;
}

/// The columns that at least one of `rows` rows sees, of `n`: all of them if one sees none, and so has weights for all.
inline Columns seen_columns(const int32_t *first, const int32_t *end, int64_t step, int64_t rows, int64_t n) {
  Columns all{n, 0};
  for (int64_t row = 0; row < rows; ++row) {
    if (first[row * step] >= end[row * step])
      return {0, n};
    all = {std::min<int64_t>(all.first, first[row * step]), std::max<int64_t>(all.end, end[row * step])};
  }
  return all;
}

} // namespace disc
