// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks over boxes of elements in several arrays at a time, and copies of boxes, by which most movement is done.
#pragma once

#include "op.h"

#include <algorithm>
#include <array>

namespace disc::interpreter {

/// An axis of a box: how many elements lie between neighbours in each of N arrays.
template <size_t N> struct Axis {
  int64_t size = 1;
  std::array<int64_t, N> steps{};
};

template <size_t N> using Axes = std::vector<Axis<N>>;

/// A box, whose elements are met in row-major order. Axes that can be walked as one are one.
template <size_t N> class Walk {
public:
  using Offsets = std::array<int64_t, N>;

  explicit Walk(const Axes<N> &axes) {
    for (const Axis<N> &axis : axes) {
      is_empty_ = is_empty_ || axis.size == 0;
      if (axis.size != 1 && !merges(axis))
        axes_.push_back(axis);
    }
    if (axes_.empty()) {
      axes_.emplace_back();
      axes_[0].steps.fill(1);
    }
  }

  /// Makes another axis the innermost one where rows are short. For walks whose order does not matter.
  void lengthen_rows() {
    auto is_long = [](const Axis<N> &axis) { return axis.size >= 8; };
    auto found = std::find_if(axes_.rbegin(), axes_.rend(), is_long);
    if (found != axes_.rend())
      std::rotate(found.base() - 1, found.base(), axes_.end());
  }

  bool is_one_element() const { return !is_empty_ && axes_.size() == 1 && axes_[0].size == 1; }

  /// Calls `row` with the offsets of a row's first elements and its axis, for each row.
  template <typename Row> void run(const Offsets &starts, const Row &row) const {
    if (!is_empty_)
      run_axes(0, starts, row);
  }

private:
  bool merges(const Axis<N> &inner) {
    if (axes_.empty())
      return false;
    Axis<N> &outer = axes_.back();
    for (size_t i = 0; i < N; ++i)
      if (outer.steps[i] != inner.steps[i] * inner.size)
        return false;
    outer = {outer.size * inner.size, inner.steps};
    return true;
  }

  template <typename Row> void run_axes(size_t first, Offsets offsets, const Row &row) const {
    const Axis<N> &axis = axes_[first];
    if (first + 1 == axes_.size())
      return row(offsets, axis);
    for (int64_t i = 0; i < axis.size; ++i) {
      run_axes(first + 1, offsets, row);
      for (size_t array = 0; array < N; ++array)
        offsets[array] += axis.steps[array];
    }
  }

  Axes<N> axes_;
  bool is_empty_ = false;
};

/// Copies a box from one array to another one.
class BoxCopy {
public:
  /// Steps are those of the source and of the target. Throws Unsupported for elements of an unknown width.
  BoxCopy(const Axes<2> &axes, int64_t element_bytes);

  /// The starts are where the box's first element is, in elements.
  void run(const void *source, int64_t source_start, void *target, int64_t target_start) const {
    copy_(walk_, source, target, {source_start, target_start});
  }

private:
  Walk<2> walk_;
  void (*copy_)(const Walk<2> &walk, const void *source, void *target, const Walk<2>::Offsets &starts);
};

/// A box with these steps in the source and in the target.
Axes<2> axes_of(const Dims &sizes, const Dims &source_steps, const Dims &target_steps);

/// Throws Unsupported unless these are axes of an array of that rank, each at most once.
void require_axes(const Dims &axes, int64_t rank);

/// The elements of an array in the order of memory.
void copy_all(const Type &type, const void *source, void *target);

/// An index of any type of integers; what is larger than the largest i64 is that one.
template <typename T> int64_t as_index(T value) {
  return value > static_cast<T>(0) && static_cast<uint64_t>(value) > uint64_t{INT64_MAX} ? INT64_MAX
                                                                                        : static_cast<int64_t>(value);
}

} // namespace disc::interpreter
