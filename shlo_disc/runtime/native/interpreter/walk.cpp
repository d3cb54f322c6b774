// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "walk.h"

#include "element_types.h"

#include <algorithm>
#include <cstring>

namespace disc::interpreter {

namespace {

/// Elements are copied that have been written, ever more at a time.
template <typename T> void fill_row(T value, T *target, int64_t size) {
  constexpr int64_t first = 16, most = 4096;
  std::fill_n(target, std::min(size, first), value);
  for (int64_t done = first; done < size;) {
    int64_t count = std::min({done, most, size - done});
    std::memcpy(target + done, target, static_cast<size_t>(count) * sizeof(T));
    done += count;
  }
}

template <typename T> void copy_row(const T *source, T *target, const Axis<2> &row) {
  auto [source_step, target_step] = row.steps;
  if (source_step == 1 && target_step == 1) {
    std::memcpy(target, source, static_cast<size_t>(row.size) * sizeof(T));
  } else if (source_step == 0 && target_step == 1) {
    fill_row(*source, target, row.size);
  } else {
    for (int64_t i = 0; i < row.size; ++i)
      target[i * target_step] = source[i * source_step];
  }
}

template <typename T>
void copy_box(const Walk<2> &walk, const void *source, void *target, const Walk<2>::Offsets &starts) {
  walk.run(starts, [&](const Walk<2>::Offsets &offsets, const Axis<2> &row) {
    copy_row(static_cast<const T *>(source) + offsets[0], static_cast<T *>(target) + offsets[1], row);
  });
}

} // namespace

BoxCopy::BoxCopy(const Axes<2> &axes, int64_t element_bytes) : walk_(axes) {
  walk_.lengthen_rows();
  copy_ = with_width(element_bytes, [](auto element) { return &copy_box<decltype(element)>; });
}

Axes<2> axes_of(const Dims &sizes, const Dims &source_steps, const Dims &target_steps) {
  Axes<2> axes;
  for (size_t i = 0; i < sizes.size(); ++i)
    axes.push_back({sizes[i], {source_steps[i], target_steps[i]}});
  return axes;
}

void require_axes(const Dims &axes, int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t axis : axes) {
    Op::require(axis >= 0 && axis < rank && !seen[static_cast<size_t>(axis)]);
    seen[static_cast<size_t>(axis)] = true;
  }
}

void copy_all(const Type &type, const void *source, void *target) {
  if (type.count() > 0)
    std::memcpy(target, source, static_cast<size_t>(type.bytes()));
}

} // namespace disc::interpreter
