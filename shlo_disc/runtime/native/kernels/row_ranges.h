// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of whole rows of a matrix, which are read in order and summed apart: as many for any number of threads, so that
// sums do not depend on it.
#pragma once

#include "gemm_blocks.h"

#include <algorithm>

namespace disc {

class RowRanges {
public:
  static constexpr int64_t kMost = 8;

  RowRanges() = default;
  /// At most `most` ranges of `rows` rows, of `fewest` rows each or all. Rows that are read `together` are in one range.
  RowRanges(int64_t rows, int64_t fewest, int64_t together, int64_t most = kMost)
      : rows_(rows), together_(together), count_(std::clamp<int64_t>(rows / fewest, 1, most)) {}

  int64_t count() const { return count_; }

  /// The first row of a range; of the one behind the last, the number of rows.
  int64_t first(int64_t range) const {
    return std::min(rows_, gemm::share(gemm::divide_up(rows_, together_), count_, range) * together_);
  }

private:
  int64_t rows_ = 0, together_ = 1, count_ = 1;
};

} // namespace disc
