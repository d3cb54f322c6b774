// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "layout.h"

#include "error.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

namespace disc::pjrt {

namespace {

using Order = std::vector<size_t>;

Order identity(size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

/// The layout of an order that is one.
Layout *new_layout(const Order &order) {
  std::vector<int64_t> reversed(order.rbegin(), order.rend());
  std::string text = "{";
  for (size_t i = 0; i < reversed.size(); ++i)
    text += (i ? "," : "") + std::to_string(reversed[i]);
  return new Layout{order, std::move(reversed), text + "}", std::ranges::is_sorted(order)};
}

Order order_of_tiled(const PJRT_Buffer_MemoryLayout_Tiled &layout, size_t rank) {
  if (layout.num_tiles != 0)
    fail_unimplemented("a tiled layout");
  if (layout.minor_to_major_size != rank)
    fail_argument("the layout has " + std::to_string(layout.minor_to_major_size) + " dimensions, the array " +
                  std::to_string(rank));
  Order order;
  for (size_t i = rank; i-- > 0;)
    order.push_back(static_cast<size_t>(given(layout.minor_to_major, rank, "minor_to_major")[i]));
  return order;
}

/// Dims of one element have no place in the order that matters: they stay where they are.
Order order_of_strides(const PJRT_Buffer_MemoryLayout_Strides &layout, Sizes dims, int64_t element_bytes) {
  if (layout.num_byte_strides != dims.size())
    fail_argument("the layout has not as many strides as the array has dimensions");
  std::span<const int64_t> strides = given(layout.byte_strides, layout.num_byte_strides, "byte_strides");
  Order order = identity(dims.size()), wide;
  std::ranges::copy_if(order, std::back_inserter(wide), [&](size_t dim) { return dims[dim] != 1; });
  std::ranges::stable_sort(wide, [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  auto next = wide.begin();
  for (size_t &dim : order)
    if (dims[dim] != 1)
      dim = *next++;
  int64_t expected = element_bytes;
  bool is_empty = std::ranges::find(dims, 0) != dims.end();
  for (size_t i = order.size(); i-- > 0 && !is_empty;) {
    if (dims[order[i]] != 1 && strides[order[i]] != expected)
      fail_unimplemented("a layout with gaps");
    expected *= dims[order[i]];
  }
  return order;
}

} // namespace

Layout &layout_of(const Order &major_to_minor) {
  if (!std::ranges::is_permutation(major_to_minor, identity(major_to_minor.size())))
    fail_argument("the layout is no order of the array's dimensions");
  static std::mutex mutex;
  static auto *layouts = new std::map<Order, std::unique_ptr<Layout>>; // never destroyed: callers may hold on to them
  std::lock_guard lock(mutex);
  std::unique_ptr<Layout> &layout = (*layouts)[major_to_minor];
  if (!layout)
    layout.reset(new_layout(major_to_minor));
  return *layout;
}

Layout &row_major(size_t rank) {
  static const std::vector<Layout *> usual = [] {
    std::vector<Layout *> layouts;
    for (size_t i = 0; i <= 8; ++i)
      layouts.push_back(&layout_of(identity(i)));
    return layouts;
  }();
  return rank < usual.size() ? *usual[rank] : layout_of(identity(rank));
}

Layout &stated_layout(const PJRT_Buffer_MemoryLayout *stated, Sizes dims, int64_t element_bytes) {
  if (!stated)
    return row_major(dims.size());
  if (stated->type == PJRT_Buffer_MemoryLayout_Type_Strides)
    return layout_of(order_of_strides(stated->strides, dims, element_bytes));
  return layout_of(order_of_tiled(stated->tiled, dims.size()));
}

std::vector<int64_t> stored_sizes(Sizes dims, const Layout &layout) {
  std::vector<int64_t> stored;
  stored.reserve(dims.size());
  for (size_t dim : layout.major_to_minor)
    stored.push_back(dims[dim]);
  return stored;
}

std::vector<int64_t> array_sizes(Sizes stored, const Layout &layout) {
  std::vector<int64_t> dims(stored.size());
  for (size_t i = 0; i < stored.size(); ++i)
    dims[layout.major_to_minor[i]] = stored[i];
  return dims;
}

std::vector<int64_t> strides_of(const Layout &layout, Sizes dims, int64_t element_bytes) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = element_bytes;
  for (int64_t dim : layout.minor_to_major) {
    auto i = static_cast<size_t>(dim);
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(dims[i], 1), &stride))
      stride = 0; // of an array that has no elements
  }
  return strides;
}

OrderedElements::OrderedElements(ArrayView view, Sizes dims, const Layout &order)
    : sizes_(stored_sizes(dims, order)), view_(std::move(view)) {
  if (view_.contiguous && order.is_row_major)
    return;
  int64_t element_bytes = info(view_.dtype).size;
  if (view_.contiguous)
    view_.strides = strides_of(row_major(dims.size()), dims, element_bytes);
  view_.strides = stored_sizes(view_.strides, order);
  view_.contiguous = disc::is_contiguous(sizes_.data(), view_.strides.data(), sizes_.size(), element_bytes);
}

void OrderedElements::copy_to(void *destination) const {
  copy_contiguous(view_, sizes_.data(), sizes_.size(), static_cast<char *>(destination));
}

} // namespace disc::pjrt
