// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions along axes, and bodies that are applied to each element. Windows and sorts are in files of their own.
#include "combine.h"
#include "reductions.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace disc::interpreter {

namespace {

constexpr int64_t lanes = 16; // sums of a row at a time: rows of floats are as exact as those of a processor's vectors

/// The elements of a row, of which there is one at least, combined. Sums begin with elements: not all bodies have an
/// element that changes no other one, as 0 does change -0.
template <typename Combine, typename T> Computed<T> combined_row(const T *row, int64_t size, int64_t step) {
  using Number = Computed<T>;
  std::array<Number, lanes> sums{};
  auto add = [&](size_t lane, int64_t i) { sums[lane] = Combine::of(sums[lane], static_cast<Number>(row[i * step])); };
  size_t used = static_cast<size_t>(std::min<int64_t>(size, lanes));
  for (size_t lane = 0; lane < used; ++lane)
    sums[lane] = static_cast<Number>(row[static_cast<int64_t>(lane) * step]);
  int64_t i = lanes;
  for (; i + lanes <= size; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      add(lane, i + static_cast<int64_t>(lane));
  for (; i < size; ++i)
    add(static_cast<size_t>(i % lanes), i);
  for (size_t half = lanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane + half < used; ++lane)
      sums[lane] = Combine::of(sums[lane], sums[lane + half]);
    used = std::min(used, half);
  }
  return sums[0];
}

using ReduceLoop = void (*)(const Walk<2> &walk, Inputs inputs, void *result, int64_t count);

/// Floats of 16 bits are summed as floats of 32.
template <typename Combine, typename T>
void reduce_elements(const Walk<2> &walk, Inputs inputs, void *result, int64_t count) {
  using Number = Computed<T>;
  constexpr bool is_apart = !std::is_same_v<Number, T>;
  constexpr int64_t block = 4096;
  std::vector<std::conditional_t<is_bool<T>, uint8_t, Number>> wide;
  auto *sums = static_cast<decltype(wide.data())>(nullptr);
  if constexpr (is_apart) {
    wide.resize(static_cast<size_t>(count));
    sums = wide.data();
  } else {
    sums = static_cast<T *>(result);
  }
  std::fill_n(sums, count, static_cast<Number>(*static_cast<const T *>(inputs[1])));
  walk.run({0, 0}, [&](const Walk<2>::Offsets &offsets, const Axis<2> &row) {
    const T *from = static_cast<const T *>(inputs[0]) + offsets[0];
    auto *sum = sums + offsets[1];
    if (row.steps[1] == 0) {
      for (int64_t i = 0; i < row.size; i += block) {
        Number part = combined_row<Combine>(from + i * row.steps[0], std::min(block, row.size - i), row.steps[0]);
        *sum = Combine::of(static_cast<Number>(*sum), part);
      }
      return;
    }
    for (int64_t i = 0; i < row.size; ++i) {
      auto &one = sum[i * row.steps[1]];
      one = Combine::of(static_cast<Number>(one), static_cast<Number>(from[i * row.steps[0]]));
    }
  });
  if constexpr (is_apart)
    for (int64_t i = 0; i < count; ++i)
      static_cast<T *>(result)[i] = T(static_cast<Number>(sums[i]));
}

/// The operands of a reduction, and what each of their elements goes to.
struct Reduction {
  std::vector<Type> types; // of the results
  Walk<2> walk;            // over an operand and its result

  explicit Reduction(const Op &op) : types(op.results), walk(axes_of_op(op)) {}

  static Axes<2> axes_of_op(const Op &op) {
    size_t count = op.results.size();
    Op::require(count > 0 && op.operands.size() == 2 * count && op.bodies.size() == 1);
    const Type &first = op.operand(0);
    const Dims &reduced = op.integers("dimensions");
    require_axes(reduced, first.rank());
    Dims kept, strides = strides_of(first.dims), result_steps(first.dims.size());
    for (size_t axis = 0; axis < first.dims.size(); ++axis)
      if (std::ranges::find(reduced, static_cast<int64_t>(axis)) == reduced.end())
        kept.push_back(first.dims[axis]);
    for (size_t k = 0; k < count; ++k) {
      DType dtype = op.operand(k).dtype;
      Op::require(op.operand(k).dims == first.dims && op.operand(count + k) == Type{dtype, {}});
      Op::require(op.result(k) == Type{dtype, kept});
    }
    Dims kept_strides = strides_of(kept);
    size_t next = 0;
    for (size_t axis = 0; axis < first.dims.size(); ++axis)
      if (std::ranges::find(reduced, static_cast<int64_t>(axis)) == reduced.end())
        result_steps[axis] = kept_strides[next++];
    return axes_of(first.dims, strides, result_steps);
  }
};

Kernel reduce(const Op &op) {
  Reduction reduction(op);
  require_combiner(op.body(), reduction.types);
  auto loop = loop_of_body<ReduceLoop>(op.body(), op.result().dtype, []<typename Combine, typename T>(Combine, T) {
    return &reduce_elements<Combine, T>;
  });
  if (loop)
    return [walk = reduction.walk, loop, count = op.result().count()](Inputs inputs, Outputs outputs) {
      loop(walk, inputs, outputs[0], count);
    };
  return [reduction, call = BodyCall(op, 0, reduction.types)](Inputs inputs, Outputs outputs) {
    size_t count = reduction.types.size();
    for (size_t k = 0; k < count; ++k)
      fill(reduction.types[k], outputs[k], inputs[count + k]);
    reduction.walk.run({0, 0}, [&](const Walk<2>::Offsets &offsets, const Axis<2> &row) {
      call.run_row(outputs, {offsets[1], row.steps[1]}, inputs, {offsets[0], row.steps[0]}, row.size);
    });
  };
}

Kernel map(const Op &op) {
  Op::require(op.results.size() == 1 && op.bodies.size() == 1 && !op.operands.empty());
  const Body &body = op.body();
  const Type &result = op.result();
  Op::require(body.run && body.arguments.size() == op.operands.size() && body.results.size() == 1);
  Op::require(body.results[0] == Type{result.dtype, {}});
  if (op.operands.size() > 2 * most_reduced)
    throw Unsupported("too many operands");
  Dims widths;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    Op::require(op.operand(k).dims == result.dims && body.arguments[k] == Type{op.operand(k).dtype, {}});
    widths.push_back(op.operand(k).element_bytes());
  }
  return [run = body.run, widths, count = result.count(), made = result.element_bytes()](Inputs inputs,
                                                                                        Outputs outputs) {
    const void *elements[2 * most_reduced];
    for (int64_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < widths.size(); ++k)
        elements[k] = static_cast<const char *>(inputs[k]) + i * widths[k];
      void *element = static_cast<char *>(outputs[0]) + i * made;
      run(elements, &element);
    }
  };
}

} // namespace

const KernelTable &reduction_kernels() {
  static const KernelTable table = {
      {"map", map},
      {"reduce", reduce},
      {"reduce_window", reduce_window_kernel},
      {"select_and_scatter", select_and_scatter_kernel},
      {"sort", sort_kernel},
  };
  return table;
}

} // namespace disc::interpreter
