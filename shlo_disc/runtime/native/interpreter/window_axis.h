// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Windows that slide over arrays: those of reductions and of convolutions.
#pragma once

#include "op.h"

#include <algorithm>
#include <numeric>

namespace disc::interpreter {

/// Windows along one axis.
struct WindowAxis {
  static constexpr int64_t limit = int64_t{1} << 40; // more than an array has elements

  int64_t size, count;            // of the array, and of windows
  int64_t window, stride, dilation;
  int64_t base_dilation, low;     // of the array, and what is padded before it
  int64_t step = 0, window_step = 0; // in elements, of the array and of the array with an element a window

  /// Throws Unsupported unless there are as many windows as follow from the rest.
  void check(int64_t high) const {
    for (int64_t number : {window, stride, dilation, base_dilation})
      Op::require(number > 0 && number < limit);
    for (int64_t number : {low, high})
      Op::require(-limit < number && number < limit);
    int64_t dilated = 0, covered = 0;
    Op::require(!__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), base_dilation, &dilated) && dilated < limit);
    Op::require(!__builtin_mul_overflow(window - 1, dilation, &covered) && covered < limit);
    int64_t padded = low + high + (size == 0 ? 0 : dilated + 1);
    Op::require(count == (padded < covered + 1 ? 0 : (padded - covered - 1) / stride + 1));
  }

  /// The element at a place of a window, or -1 where it is padding.
  int64_t element(int64_t number, int64_t place) const {
    int64_t at = number * stride + place * dilation - low;
    bool is_inside = at >= 0 && at % base_dilation == 0 && at / base_dilation < size;
    return is_inside ? at / base_dilation : -1;
  }

  /// The windows that have an element at a place: the first one, how many there are, and how far apart.
  struct Range {
    int64_t first, count, step;
  };
  Range windows_with(int64_t place) const {
    int64_t step = base_dilation / std::gcd(stride, base_dilation);
    int64_t before = low - place * dilation; // padding before the place in window 0
    int64_t first = before > 0 ? (before + stride - 1) / stride : 0;
    for (int64_t tries = 0; tries < step && first < count && element(first, place) < 0; ++tries)
      ++first;
    if (first >= count || element(first, place) < 0)
      return {0, 0, 1};
    int64_t last = ((size - 1) * base_dilation + before) / stride; // no window behind it has one
    return {first, (std::min(last, count - 1) - first) / step + 1, step};
  }
};

using WindowAxes = std::vector<WindowAxis>;

/// Steps through all numbers below sizes, the last one first. False at the end.
inline bool advance(Dims &numbers, const WindowAxes &axes, int64_t WindowAxis::*size) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++numbers[i] < axes[i].*size)
      return true;
    numbers[i] = 0;
  }
  return false;
}

} // namespace disc::interpreter
