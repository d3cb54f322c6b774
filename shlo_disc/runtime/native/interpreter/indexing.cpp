// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that read or write windows of an array at places that indices tell: gather and scatter.
#include "combine.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

/// The attributes of gather; those of scatter mean the same.
struct WindowNumbers {
  Dims window_axes;      // of the array of windows: the others are a batch
  Dims dropped_axes;     // of the operand, which the array of windows has not
  Dims operand_batching; // axes of the operand along which each window is at its own place in the batch
  Dims index_batching;   // the same axes of the indices
  Dims index_map;        // for each number of a vector of indices, the operand's axis
  int64_t vector_axis;   // of the indices
};

bool contains(const Dims &all, int64_t value) { return std::ranges::find(all, value) != all.end(); }

Dims joined(Dims first, const Dims &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The axes of an array of that rank that are not among those.
Dims other_axes(const Dims &axes, int64_t rank) {
  Dims others;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (!contains(axes, axis))
      others.push_back(axis);
  return others;
}

Dims picked(const Dims &all, const Dims &axes) {
  Dims out;
  for (int64_t axis : axes)
    out.push_back(all[static_cast<size_t>(axis)]);
  return out;
}

/// Where a window's first element is, in the operand and in the array of windows.
struct Place {
  int64_t operand, window;
};

constexpr int64_t chunk = 128; // places that are found at a time

/// Windows of an operand, one for each vector of indices.
class Windows {
public:
  /// `windows` is the array in which they stand one by one: gather's result, scatter's updates. Throws Unsupported
  /// unless all that is read and written is inside of the arrays, whatever the indices are.
  Windows(const Type &operand, const Type &indices, const Type &windows, const WindowNumbers &numbers, bool is_clamped);

  /// Along the operand's axes.
  const Dims &sizes() const { return sizes_; }
  /// The axes of a window, with the steps in the operand and in the array of windows.
  const Axes<2> &axes() const { return axes_; }

  /// Calls `each` with places and their number until there are no more, in row-major order of the batch. Windows that
  /// are not inside of the operand are moved, if they are clamped, or else left out.
  template <typename Each> void for_each_chunk(const void *indices, const Each &each) const {
    batch_.run({0, 0, 0}, [&](const Walk<3>::Offsets &offsets, const Axis<3> &row) {
      Place places[chunk];
      for (int64_t first = 0; first < row.size; first += chunk) {
        Walk<3>::Offsets starts = offsets;
        for (size_t i = 0; i < starts.size(); ++i)
          starts[i] += first * row.steps[i];
        int64_t count = find_(*this, indices, starts, {std::min(chunk, row.size - first), row.steps}, places);
        each(places, count);
      }
    });
  }

private:
  /// One of the numbers of a vector of indices.
  struct Number {
    int64_t offset; // from the first one
    int64_t most;   // the largest start for which a window is inside
    int64_t stride; // of the operand's axis
  };
  using Find = int64_t (*)(const Windows &windows, const void *indices, const Walk<3>::Offsets &starts,
                           const Axis<3> &row, Place *places);

  static Axes<3> batch_axes(const Type &operand, const Type &indices, const Type &windows,
                            const WindowNumbers &numbers);
  template <typename T, bool is_clamped>
  static int64_t find(const Windows &windows, const void *indices, const Walk<3>::Offsets &starts, const Axis<3> &row,
                      Place *places);

  Dims sizes_;
  Axes<2> axes_;
  Walk<3> batch_; // over the indices, the array of windows, and the operand
  std::vector<Number> numbers_;
  Find find_;
};

/// The axes of the batch in the order of the indices, which is that of the array of windows.
Axes<3> Windows::batch_axes(const Type &operand, const Type &indices, const Type &windows,
                            const WindowNumbers &numbers) {
  int64_t vector_axis = numbers.vector_axis;
  Op::require(vector_axis >= 0 && vector_axis <= indices.rank());
  require_axes(numbers.window_axes, windows.rank());
  require_axes(numbers.index_batching, indices.rank());
  require_axes(joined(numbers.dropped_axes, numbers.operand_batching), operand.rank());
  Op::require(!contains(numbers.index_batching, vector_axis));
  Op::require(picked(operand.dims, numbers.operand_batching) == picked(indices.dims, numbers.index_batching));
  Dims from = other_axes({vector_axis}, indices.rank()), to = other_axes(numbers.window_axes, windows.rank());
  Op::require(picked(indices.dims, from) == picked(windows.dims, to));
  Dims steps = picked(strides_of(operand.dims), numbers.operand_batching);
  Dims index_strides = strides_of(indices.dims), window_strides = strides_of(windows.dims);
  Axes<3> axes;
  for (size_t i = 0; i < from.size(); ++i) {
    auto index_axis = static_cast<size_t>(from[i]), window_axis = static_cast<size_t>(to[i]);
    auto batching = std::ranges::find(numbers.index_batching, from[i]) - numbers.index_batching.begin();
    bool is_batching = batching < std::ssize(steps);
    int64_t step = is_batching ? steps[static_cast<size_t>(batching)] : 0;
    axes.push_back({indices.dims[index_axis], {index_strides[index_axis], window_strides[window_axis], step}});
  }
  if (windows.count() == 0)
    axes.push_back({0, {}});
  return axes;
}

Windows::Windows(const Type &operand, const Type &indices, const Type &windows, const WindowNumbers &numbers,
                 bool is_clamped)
    : sizes_(operand.dims.size(), 1), batch_(batch_axes(operand, indices, windows, numbers)) {
  Dims dropped = joined(numbers.dropped_axes, numbers.operand_batching), kept = other_axes(dropped, operand.rank());
  Op::require(kept.size() == numbers.window_axes.size() && std::ranges::is_sorted(numbers.window_axes));
  Dims strides = strides_of(operand.dims), window_strides = strides_of(windows.dims);
  for (size_t i = 0; i < kept.size(); ++i) {
    auto axis = static_cast<size_t>(kept[i]), window_axis = static_cast<size_t>(numbers.window_axes[i]);
    sizes_[axis] = windows.dims[window_axis];
    Op::require(sizes_[axis] <= operand.dims[axis]);
    axes_.push_back({sizes_[axis], {strides[axis], window_strides[window_axis]}});
  }
  bool has_vectors = numbers.vector_axis < indices.rank();
  auto vector_axis = static_cast<size_t>(numbers.vector_axis);
  Op::require(std::ssize(numbers.index_map) == (has_vectors ? indices.dims[vector_axis] : 1));
  require_axes(joined(numbers.index_map, numbers.operand_batching), operand.rank());
  int64_t step = has_vectors ? strides_of(indices.dims)[vector_axis] : 0, offset = 0;
  for (int64_t axis : numbers.index_map) {
    auto i = static_cast<size_t>(axis);
    numbers_.push_back({offset, operand.dims[i] - sizes_[i], strides[i]});
    offset += step;
  }
  find_ = with_type(indices.dtype, [&](auto element) -> Find {
    using T = decltype(element);
    if constexpr (is_int<T>)
      return is_clamped ? &find<T, true> : &find<T, false>;
    throw Unsupported("an index is no integer");
  });
}

template <typename T, bool is_clamped>
int64_t Windows::find(const Windows &windows, const void *indices, const Walk<3>::Offsets &starts, const Axis<3> &row,
                      Place *places) {
  int64_t found = 0;
  for (int64_t i = 0; i < row.size; ++i) {
    const T *vector = static_cast<const T *>(indices) + starts[0] + i * row.steps[0];
    Place place{starts[2] + i * row.steps[2], starts[1] + i * row.steps[1]};
    bool is_inside = true;
    for (const Number &number : windows.numbers_) {
      int64_t index = as_index(vector[number.offset]);
      int64_t moved = std::max<int64_t>(std::min(index, number.most), 0);
      is_inside = is_inside && (is_clamped || moved == index) && number.most >= 0;
      place.operand += moved * number.stride;
    }
    if (is_inside)
      places[found++] = place;
  }
  return found;
}

/// An attribute that the first version of an op has not; then it is empty.
Dims integers_if_any(const Op &op, std::string_view name) {
  auto found = op.attributes.find(name);
  return found == op.attributes.end() ? Dims{} : found->second.integers;
}

template <typename T>
void copy_elements(const Place *places, int64_t count, const void *source, void *target) {
  for (int64_t i = 0; i < count; ++i)
    static_cast<T *>(target)[places[i].window] = static_cast<const T *>(source)[places[i].operand];
}

Kernel gather(const Op &op) {
  Op::require(op.operands.size() == 2 && op.results.size() == 1);
  const Type &operand = op.operand(0), &result = op.result();
  Op::require(result.dtype == operand.dtype);
  WindowNumbers numbers{op.integers("offset_dims"), op.integers("collapsed_slice_dims"),
                        integers_if_any(op, "operand_batching_dims"),
                        integers_if_any(op, "start_indices_batching_dims"), op.integers("start_index_map"),
                        op.integer("index_vector_dim")};
  Windows windows(operand, op.operand(1), result, numbers, true);
  Op::require(op.integers("slice_sizes") == windows.sizes());
  // A window of one element along an axis without any has no place to be read from.
  for (size_t i = 0; i < operand.dims.size(); ++i)
    Op::require(windows.sizes()[i] <= operand.dims[i]);
  if (Walk<2>(windows.axes()).is_one_element())
    return with_width(result.element_bytes(), [&](auto element) -> Kernel {
      return [windows](Inputs inputs, Outputs outputs) {
        windows.for_each_chunk(inputs[1], [&](const Place *places, int64_t count) {
          copy_elements<decltype(element)>(places, count, inputs[0], outputs[0]);
        });
      };
    });
  BoxCopy copy(windows.axes(), result.element_bytes());
  return [windows, copy](Inputs inputs, Outputs outputs) {
    windows.for_each_chunk(inputs[1], [&](const Place *places, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        copy.run(inputs[0], places[i].operand, outputs[0], places[i].window);
    });
  };
}

/// What combines rows of updates with elements of the results. Offsets and steps are those of the results, then of the
/// updates.
class Combiner {
public:
  explicit Combiner(const Op &op) : call_(op, 0, op.results) {
    loop_ = loop_of_body<Loop>(op.body(), op.result().dtype, []<typename Combine, typename T>(Combine, T) {
      return &combine<Combine, T>;
    });
  }

  void run(Inputs updates, Outputs results, const Walk<2>::Offsets &offsets, const Axis<2> &row) const {
    if (loop_)
      loop_(updates[0], results[0], offsets, row);
    else
      call_.run_row(results, {offsets[0], row.steps[0]}, updates, {offsets[1], row.steps[1]}, row.size);
  }

private:
  using Loop = void (*)(const void *updates, void *results, const Walk<2>::Offsets &offsets, const Axis<2> &row);

  template <typename Combine, typename T>
  static void combine(const void *updates, void *results, const Walk<2>::Offsets &offsets, const Axis<2> &row) {
    const T *update = static_cast<const T *>(updates) + offsets[1];
    T *result = static_cast<T *>(results) + offsets[0];
    for (int64_t i = 0; i < row.size; ++i, update += row.steps[1], result += row.steps[0])
      *result = static_cast<T>(Combine::of(static_cast<Computed<T>>(*result), static_cast<Computed<T>>(*update)));
  }

  BodyCall call_;
  Loop loop_;
};

Kernel scatter(const Op &op) {
  size_t count = op.results.size();
  Op::require(count > 0 && op.operands.size() == 2 * count + 1 && op.bodies.size() == 1);
  const Type &first = op.result(), &updates = op.operand(count + 1);
  for (size_t k = 0; k < count; ++k) {
    const Type &result = op.result(k);
    Op::require(op.operand(k) == result && result.dims == first.dims);
    Op::require(op.operand(count + 1 + k) == Type{result.dtype, updates.dims});
  }
  WindowNumbers numbers{op.integers("update_window_dims"), op.integers("inserted_window_dims"),
                        integers_if_any(op, "input_batching_dims"),
                        integers_if_any(op, "scatter_indices_batching_dims"),
                        op.integers("scatter_dims_to_operand_dims"), op.integer("index_vector_dim")};
  Windows windows(first, op.operand(count), updates, numbers, false);
  // What is inserted is one element, and without an index it is the first one.
  for (int64_t axis : numbers.dropped_axes)
    Op::require(contains(numbers.index_map, axis) || first.dims[static_cast<size_t>(axis)] > 0);
  std::vector<Type> results = op.results;
  return [windows, walk = Walk<2>(windows.axes()), combiner = Combiner(op), results](Inputs inputs, Outputs outputs) {
    size_t count = results.size();
    for (size_t k = 0; k < count; ++k)
      copy_all(results[k], inputs[k], outputs[k]);
    windows.for_each_chunk(inputs[count], [&](const Place *places, int64_t found) {
      for (int64_t i = 0; i < found; ++i)
        walk.run({places[i].operand, places[i].window}, [&](const Walk<2>::Offsets &offsets, const Axis<2> &row) {
          combiner.run(inputs + count + 1, outputs, offsets, row);
        });
    });
  };
}

} // namespace

const KernelTable &indexing_kernels() {
  static const KernelTable table = {{"gather", gather}, {"scatter", scatter}};
  return table;
}

} // namespace disc::interpreter
