// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "layout.h"

#include "error.h"

#include <algorithm>
#include <numeric>

namespace disc::pjrt {

namespace {

std::vector<size_t> order_of_tiled(const PJRT_Buffer_MemoryLayout_Tiled &layout, Sizes dims) {
  if (layout.num_tiles != 0)
    fail_unimplemented("a tiled layout");
  std::vector<size_t> order;
  std::vector<bool> seen(dims.size());
  for (size_t i = layout.minor_to_major_size; i-- > 0;) {
    int64_t dim = layout.minor_to_major[i];
    if (dim < 0 || static_cast<size_t>(dim) >= dims.size() || seen[static_cast<size_t>(dim)])
      fail_argument("the layout is no order of the array's dimensions");
    seen[static_cast<size_t>(dim)] = true;
    order.push_back(static_cast<size_t>(dim));
  }
  if (order.size() != dims.size())
    fail_argument("the layout is no order of the array's dimensions");
  return order;
}

/// Dims of one element have no place in the order that matters.
std::vector<size_t> order_of_strides(const PJRT_Buffer_MemoryLayout_Strides &layout, Sizes dims,
                                     int64_t element_bytes) {
  if (layout.num_byte_strides != dims.size())
    fail_argument("the layout has not as many strides as the array has dimensions");
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return dims[a] != 1 && dims[b] != 1 && layout.byte_strides[a] > layout.byte_strides[b];
  });
  int64_t expected = element_bytes;
  bool is_empty = std::ranges::find(dims, 0) != dims.end();
  for (size_t i = order.size(); i-- > 0 && !is_empty;) {
    if (dims[order[i]] != 1 && layout.byte_strides[order[i]] != expected)
      fail_unimplemented("a layout with gaps");
    expected *= dims[order[i]];
  }
  return order;
}

} // namespace

std::vector<size_t> major_to_minor(const PJRT_Buffer_MemoryLayout *layout, Sizes dims, int64_t element_bytes) {
  if (!layout) {
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides)
    return order_of_strides(layout->strides, dims, element_bytes);
  return order_of_tiled(layout->tiled, dims);
}

void require_row_major(const PJRT_Buffer_MemoryLayout *layout, Sizes dims, int64_t element_bytes) {
  if (!std::ranges::is_sorted(major_to_minor(layout, dims, element_bytes)))
    fail_unimplemented("a device layout other than row-major");
}

std::vector<int64_t> row_major_strides(Sizes dims, int64_t element_bytes) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = element_bytes;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(dims[i], 1), &stride))
      stride = 0; // of an array that has no elements
  }
  return strides;
}

std::string row_major_text(size_t rank) {
  std::string text = "{";
  for (size_t i = rank; i-- > 0;)
    text += std::to_string(i) + (i ? "," : "");
  return text + "}";
}

} // namespace disc::pjrt
