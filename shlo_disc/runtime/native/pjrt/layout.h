// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Orders of elements: how the dimensions of a dense array follow each other in memory.
#pragma once

#include "core/array_view.h"
#include "pjrt_c_api.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// There is one object for each order, which lives as long as the process: layouts are equal if they are the same object.
struct PJRT_Layouts_MemoryLayout {
  const std::vector<size_t> major_to_minor;   // the dims, slowest first
  const std::vector<int64_t> minor_to_major;  // the dims, fastest first
  const std::string text;                     // likewise, in the words of XLA: "{1,0}"
  const bool is_row_major;
};

namespace disc::pjrt {

using Layout = PJRT_Layouts_MemoryLayout;
using Sizes = std::span<const int64_t>;

/// Throws INVALID_ARGUMENT for what is no order of so many dims.
Layout &layout_of(const std::vector<size_t> &major_to_minor);

Layout &row_major(size_t rank);

/// The layout that a caller states; row-major where it states none. Throws UNIMPLEMENTED for tiles and gaps,
/// INVALID_ARGUMENT for what is no layout of these dims.
Layout &stated_layout(const PJRT_Buffer_MemoryLayout *stated, Sizes dims, int64_t element_bytes);

/// The sizes in the order of the layout, slowest first.
std::vector<int64_t> stored_sizes(Sizes dims, const Layout &layout);

/// The sizes of the array whose stored sizes these are.
std::vector<int64_t> array_sizes(Sizes stored, const Layout &layout);

/// Strides in bytes of the dims of an array that lies in this layout.
std::vector<int64_t> strides_of(const Layout &layout, Sizes dims, int64_t element_bytes);

/// The elements of an array, seen in the order of a layout: where that is their own, as contiguous.
class OrderedElements {
public:
  /// view: the array; strides that it does not state are those of row-major order.
  OrderedElements(ArrayView view, Sizes dims, const Layout &order);

  bool is_contiguous() const { return view_.contiguous; }

  /// Writes the elements densely.
  void copy_to(void *destination) const;

private:
  std::vector<int64_t> sizes_;
  ArrayView view_;
};

} // namespace disc::pjrt
