// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays cut along an axis into pieces of one size, and the bytes that pieces of two arrays share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace disc {

/// The `index`-th of `count` pieces of a row-major array with these dims.
struct Piece {
  std::vector<int64_t> dims; // of the whole array
  int64_t axis = 0;
  int64_t count = 1;
  int64_t index = 0;

  std::vector<int64_t> sizes() const {
    std::vector<int64_t> cut(dims);
    if (!cut.empty())
      cut[static_cast<size_t>(axis)] /= count;
    return cut;
  }

  /// Elements from one place to the next along an axis of the whole array.
  int64_t stride(size_t at) const {
    int64_t elements = 1;
    for (size_t i = at + 1; i < dims.size(); ++i)
      elements *= dims[i];
    return elements;
  }

  /// The first element's place in the whole array.
  int64_t offset() const {
    auto at = static_cast<size_t>(axis);
    return dims.empty() ? 0 : dims[at] / count * index * stride(at);
  }

  /// From the first element's place to behind the last one's.
  std::pair<int64_t, int64_t> extent() const {
    std::vector<int64_t> cut = sizes();
    int64_t last = offset();
    for (size_t i = 0; i < cut.size(); ++i)
      last += (cut[i] - 1) * stride(i);
    bool is_empty = std::ranges::find(cut, 0) != cut.end();
    return {offset(), is_empty ? offset() : last + 1};
  }
};

/// Calls `body(a's element, b's element, elements)` for all runs of elements that lie side by side in both of two
/// pieces of equal sizes, in order.
template <typename Body> void for_each_run(const Piece &a, const Piece &b, Body body) {
  std::vector<int64_t> sizes = a.sizes();
  auto last = static_cast<size_t>(a.axis > b.axis ? a.axis : b.axis);
  int64_t run = 1, runs = 1;
  for (size_t i = 0; i < sizes.size(); ++i)
    (i < last ? runs : run) *= sizes[i];
  if (run == 0)
    return;
  for (int64_t number = 0; number < runs; ++number) {
    int64_t from = a.offset(), to = b.offset(), rest = number;
    for (size_t i = last; i-- > 0;) {
      from += rest % sizes[i] * a.stride(i);
      to += rest % sizes[i] * b.stride(i);
      rest /= sizes[i];
    }
    body(from, to, run);
  }
}

} // namespace disc
