// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions of windows that slide over arrays. Padding, and what lies between elements, is no part of a window, as XLA has
// it: initial values take part once.
#include "combine.h"
#include "reductions.h"
#include "window_axis.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

/// Those of `array`, of which each makes an element of `windows`.
WindowAxes window_axes(const Op &op, const Type &array, const Type &windows, bool is_dilated) {
  size_t rank = array.dims.size();
  Op::require(windows.dims.size() == rank);
  Dims ones(rank, 1);
  const Dims &sizes = op.integers("window_dimensions", rank), &strides = op.integers("window_strides", rank);
  const Dims &dilations = is_dilated ? op.integers("window_dilations", rank) : ones;
  const Dims &bases = is_dilated ? op.integers("base_dilations", rank) : ones;
  const Dims &padding = op.integers("padding", 2 * rank);
  Dims steps = strides_of(array.dims), window_steps = strides_of(windows.dims);
  WindowAxes axes;
  for (size_t i = 0; i < rank; ++i) {
    axes.push_back({array.dims[i], windows.dims[i], sizes[i], strides[i], dilations[i], bases[i], padding[2 * i],
                    steps[i], window_steps[i]});
    axes.back().check(padding[2 * i + 1]);
  }
  return axes;
}

bool is_empty(const WindowAxes &axes, int64_t WindowAxis::*size) {
  return std::ranges::any_of(axes, [=](const WindowAxis &axis) { return axis.*size == 0; });
}

/// The offset of a window's element in the array, or -1.
int64_t offset_of(const WindowAxes &axes, const Dims &numbers, const Dims &places) {
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t element = axes[i].element(numbers[i], places[i]);
    if (element < 0)
      return -1;
    offset += element * axes[i].step;
  }
  return offset;
}

/// Calls `visit` with the offsets of a row of elements and of what their windows make, place by place of the windows.
template <typename Visit> void visit_places(const WindowAxes &axes, const Visit &visit) {
  Dims places(axes.size());
  if (is_empty(axes, &WindowAxis::count))
    return;
  do {
    Axes<2> box;
    int64_t from = 0, to = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const WindowAxis &axis = axes[i];
      auto [first, count, step] = axis.windows_with(places[i]);
      int64_t apart = step * axis.stride / axis.base_dilation;
      box.push_back({count, {apart * axis.step, step * axis.window_step}});
      from += count == 0 ? 0 : axis.element(first, places[i]) * axis.step;
      to += first * axis.window_step;
    }
    Walk<2>(box).run({from, to}, visit);
  } while (advance(places, axes, &WindowAxis::window));
}

using WindowLoop = void (*)(const WindowAxes &axes, Inputs inputs, void *result, int64_t count);

template <typename Combine, typename T>
void reduce_windows(const WindowAxes &axes, Inputs inputs, void *result, int64_t count) {
  using Number = Computed<T>;
  auto initial = static_cast<Number>(*static_cast<const T *>(inputs[1]));
  std::vector<std::conditional_t<is_bool<T>, uint8_t, Number>> sums(static_cast<size_t>(count), initial);
  visit_places(axes, [&](const Walk<2>::Offsets &offsets, const Axis<2> &row) {
    const T *from = static_cast<const T *>(inputs[0]) + offsets[0];
    auto *sum = sums.data() + offsets[1];
    for (int64_t i = 0; i < row.size; ++i) {
      auto &one = sum[i * row.steps[1]];
      one = Combine::of(static_cast<Number>(one), static_cast<Number>(from[i * row.steps[0]]));
    }
  });
  for (int64_t i = 0; i < count; ++i)
    static_cast<T *>(result)[i] = T(static_cast<Number>(sums[static_cast<size_t>(i)]));
}

/// Calls the body for each element of each window.
void reduce_windows_by_body(const WindowAxes &axes, const std::vector<Type> &types, const BodyCall &call, Inputs inputs,
                            Outputs outputs) {
  size_t count = types.size();
  for (size_t k = 0; k < count; ++k)
    fill(types[k], outputs[k], inputs[count + k]);
  if (is_empty(axes, &WindowAxis::count))
    return;
  Dims numbers(axes.size()), places(axes.size());
  int64_t window = 0;
  do {
    void *sums[most_reduced];
    for (size_t k = 0; k < count; ++k)
      sums[k] = static_cast<char *>(outputs[k]) + window * types[k].element_bytes();
    do {
      int64_t offset = offset_of(axes, numbers, places);
      if (offset < 0)
        continue;
      const void *elements[most_reduced];
      for (size_t k = 0; k < count; ++k)
        elements[k] = static_cast<const char *>(inputs[k]) + offset * types[k].element_bytes();
      call.run(sums, elements);
    } while (advance(places, axes, &WindowAxis::window));
    ++window;
  } while (advance(numbers, axes, &WindowAxis::count));
}

} // namespace

Kernel reduce_window_kernel(const Op &op) {
  size_t count = op.results.size();
  Op::require(count > 0 && op.operands.size() == 2 * count && op.bodies.size() == 1);
  const Dims &dims = op.operand(0).dims;
  for (size_t k = 0; k < count; ++k) {
    DType dtype = op.operand(k).dtype;
    Op::require(op.operand(k).dims == dims && op.operand(count + k) == Type{dtype, {}});
    Op::require(op.result(k) == Type{dtype, op.result().dims});
  }
  require_combiner(op.body(), op.results);
  WindowAxes axes = window_axes(op, op.operand(0), op.result(), true);
  auto loop = loop_of_body<WindowLoop>(op.body(), op.result().dtype, []<typename Combine, typename T>(Combine, T) {
    return &reduce_windows<Combine, T>;
  });
  return [axes, types = op.results, loop, call = BodyCall(op, 0, op.results)](Inputs inputs, Outputs outputs) {
    if (loop)
      loop(axes, inputs, outputs[0], types[0].count());
    else
      reduce_windows_by_body(axes, types, call, inputs, outputs);
  };
}

/// Of each window one element is selected, to which the source's element is added, or whatever the second body does.
Kernel select_and_scatter_kernel(const Op &op) {
  Op::require(op.operands.size() == 3 && op.results.size() == 1 && op.bodies.size() == 2);
  const Type &operand = op.operand(0), &source = op.operand(1), &result = op.result();
  Type element{operand.dtype, {}};
  Op::require(result == operand && source.dtype == operand.dtype && op.operand(2) == element);
  const Body &select = op.body(0);
  Op::require(select.run && select.arguments == std::vector<Type>{element, element});
  Op::require(select.results == std::vector<Type>{{DType::i1, {}}});
  WindowAxes axes = window_axes(op, operand, source, false);
  BodyCall scatter(op, 1, op.results);
  return [axes, result, is_kept = select.run, scatter](Inputs inputs, Outputs outputs) {
    fill(result, outputs[0], inputs[2]);
    if (is_empty(axes, &WindowAxis::count))
      return;
    int64_t width = result.element_bytes();
    Dims numbers(axes.size()), places(axes.size());
    const char *given = static_cast<const char *>(inputs[0]), *source = static_cast<const char *>(inputs[1]);
    do {
      int64_t selected = -1;
      do {
        int64_t offset = offset_of(axes, numbers, places);
        if (offset < 0)
          continue;
        const void *elements[] = {given + std::max<int64_t>(selected, 0) * width, given + offset * width};
        uint8_t keeps = 0;
        void *answer = &keeps;
        if (selected >= 0)
          is_kept(elements, &answer);
        selected = keeps ? selected : offset;
      } while (advance(places, axes, &WindowAxis::window));
      if (selected >= 0) {
        void *to = static_cast<char *>(outputs[0]) + selected * width;
        const void *from = source;
        scatter.run(&to, &from);
      }
      source += width;
    } while (advance(numbers, axes, &WindowAxis::count));
  };
}

} // namespace disc::interpreter
