// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that only move elements.
#include "element_types.h"
#include "walk.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

/// Throws Unsupported unless the op has that many operands, and a result with elements of the first one's type.
void require_operands(const Op &op, size_t count) {
  Op::require(op.operands.size() == count && op.results.size() == 1 && count > 0);
  Op::require(op.operand(0).dtype == op.result().dtype);
}

/// Fills the result from the operand, whose first element to be read is at `start`.
Kernel copying(const Op &op, const Dims &source_steps, int64_t start = 0) {
  const Type &result = op.result();
  BoxCopy copy(axes_of(result.dims, source_steps, strides_of(result.dims)), result.element_bytes());
  return [copy, start](Inputs inputs, Outputs outputs) { copy.run(inputs[0], start, outputs[0], 0); };
}

Kernel broadcast_in_dim(const Op &op) {
  require_operands(op, 1);
  const Type &operand = op.operand(0), &result = op.result();
  const Dims &axes = op.integers("broadcast_dimensions", operand.dims.size());
  require_axes(axes, result.rank());
  Dims strides = strides_of(operand.dims), steps(result.dims.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<size_t>(axes[i]);
    Op::require(operand.dims[i] == 1 || operand.dims[i] == result.dims[axis]);
    steps[axis] = operand.dims[i] == 1 ? 0 : strides[i];
  }
  return copying(op, steps);
}

Kernel reshape(const Op &op) {
  require_operands(op, 1);
  Type result = op.result();
  Op::require(op.operand(0).count() == result.count());
  return [result](Inputs inputs, Outputs outputs) { copy_all(result, inputs[0], outputs[0]); };
}

Kernel optimization_barrier(const Op &op) {
  Op::require(op.operands == op.results);
  std::vector<Type> types = op.results;
  return [types](Inputs inputs, Outputs outputs) {
    for (size_t i = 0; i < types.size(); ++i)
      copy_all(types[i], inputs[i], outputs[i]);
  };
}

Kernel transpose(const Op &op) {
  require_operands(op, 1);
  const Type &operand = op.operand(0), &result = op.result();
  const Dims &permutation = op.integers("permutation", operand.dims.size());
  require_axes(permutation, operand.rank());
  Op::require(result.rank() == operand.rank());
  Dims strides = strides_of(operand.dims), steps;
  for (size_t i = 0; i < permutation.size(); ++i) {
    auto from = static_cast<size_t>(permutation[i]);
    Op::require(result.dims[i] == operand.dims[from]);
    steps.push_back(strides[from]);
  }
  return copying(op, steps);
}

Kernel slice(const Op &op) {
  require_operands(op, 1);
  const Type &operand = op.operand(0), &result = op.result();
  size_t rank = operand.dims.size();
  const Dims &starts = op.integers("start_indices", rank), &limits = op.integers("limit_indices", rank);
  const Dims &every = op.integers("strides", rank);
  Op::require(result.dims.size() == rank);
  Dims steps = strides_of(operand.dims);
  int64_t start = 0;
  for (size_t i = 0; i < rank; ++i) {
    Op::require(starts[i] >= 0 && starts[i] <= limits[i] && limits[i] <= operand.dims[i] && every[i] > 0);
    int64_t length = limits[i] - starts[i];
    Op::require(result.dims[i] == (length == 0 ? 0 : (length - 1) / every[i] + 1));
    start += starts[i] * steps[i];
    steps[i] *= std::min(every[i], std::max<int64_t>(operand.dims[i], 1)); // a larger one has no second element
  }
  return copying(op, steps, start);
}

Kernel reverse(const Op &op) {
  require_operands(op, 1);
  const Type &operand = op.operand(0);
  Op::require(operand == op.result());
  const Dims &axes = op.integers("dimensions");
  require_axes(axes, operand.rank());
  Dims steps = strides_of(operand.dims);
  int64_t start = 0;
  for (int64_t axis : axes) {
    auto i = static_cast<size_t>(axis);
    start += (operand.dims[i] - 1) * steps[i];
    steps[i] = -steps[i];
  }
  return copying(op, steps, start);
}

Kernel concatenate(const Op &op) {
  require_operands(op, op.operands.size());
  const Type &result = op.result();
  int64_t dimension = op.integer("dimension"), offset = 0;
  require_axes({dimension}, result.rank());
  auto axis = static_cast<size_t>(dimension);
  Dims strides = strides_of(result.dims);
  std::vector<std::pair<BoxCopy, int64_t>> copies; // with the place in the result
  for (const Type &operand : op.operands) {
    Type expected = result;
    Op::require(operand.rank() == result.rank());
    expected.dims[axis] = operand.dims[axis];
    Op::require(operand == expected && operand.dims[axis] <= result.dims[axis] - offset);
    copies.emplace_back(BoxCopy(axes_of(operand.dims, strides_of(operand.dims), strides), result.element_bytes()),
                        offset * strides[axis]);
    offset += operand.dims[axis];
  }
  Op::require(offset == result.dims[axis]);
  return [copies](Inputs inputs, Outputs outputs) {
    for (size_t i = 0; i < copies.size(); ++i)
      copies[i].first.run(inputs[i], 0, outputs[0], copies[i].second);
  };
}

/// Where elements along one axis come to lie when padding lies around and between them.
struct PaddedAxis {
  int64_t first = 0, count = 0; // of the elements that are kept
  int64_t place = 0, step = 1;  // of the first one, and between them

  PaddedAxis(int64_t size, int64_t low, int64_t high, int64_t interior, int64_t padded) {
    constexpr int64_t limit = int64_t{1} << 44; // more than an array has elements
    Op::require(-limit < low && low < limit && -limit < high && high < limit && 0 <= interior && interior < limit);
    int64_t between = 0;
    bool is_too_large = __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), interior, &between) || between > limit;
    Op::require(!is_too_large && low + high + size + between == padded);
    step = interior + 1;
    first = low >= 0 ? 0 : (step - 1 - low) / step;
    place = low + first * step;
    if (place < padded)
      count = std::max<int64_t>(std::min(size - first, (padded - 1 - place) / step + 1), 0);
  }
};

/// The result is filled with the padding first.
Kernel pad(const Op &op) {
  require_operands(op, 2);
  const Type &operand = op.operand(0), &result = op.result();
  size_t rank = operand.dims.size();
  Op::require(op.operand(1) == Type{operand.dtype, {}} && result.dims.size() == rank);
  const Dims &low = op.integers("edge_padding_low", rank), &high = op.integers("edge_padding_high", rank);
  const Dims &interior = op.integers("interior_padding", rank);
  Dims source_strides = strides_of(operand.dims), target_strides = strides_of(result.dims);
  Axes<2> axes;
  int64_t from = 0, to = 0;
  for (size_t i = 0; i < rank; ++i) {
    PaddedAxis axis(operand.dims[i], low[i], high[i], interior[i], result.dims[i]);
    bool has_neighbours = axis.count > 1;
    axes.push_back({axis.count, {source_strides[i], has_neighbours ? axis.step * target_strides[i] : 0}});
    from += axis.count > 0 ? axis.first * source_strides[i] : 0;
    to += axis.count > 0 ? axis.place * target_strides[i] : 0;
  }
  BoxCopy copy(axes, result.element_bytes()), fill({{result.count(), {0, 1}}}, result.element_bytes());
  return [copy, fill, from, to](Inputs inputs, Outputs outputs) {
    fill.run(inputs[1], 0, outputs[0], 0);
    copy.run(inputs[0], from, outputs[0], to);
  };
}

/// Where a box begins that indices tell, which are operands of their own. It is moved to lie inside of the array.
class DynamicStart {
public:
  /// The box is in an array of `dims`; the indices are the operands from the first one on.
  DynamicStart(const Op &op, size_t first_operand, const Dims &dims, const Dims &sizes) {
    Op::require(sizes.size() == dims.size() && op.operands.size() == first_operand + dims.size());
    Dims strides = strides_of(dims);
    for (size_t i = 0; i < dims.size(); ++i) {
      const Type &index = op.operand(first_operand + i);
      Op::require(index.dims.empty() && sizes[i] >= 0 && sizes[i] <= dims[i]);
      axes_.push_back({first_operand + i, reader_of(index.dtype), dims[i] - sizes[i], strides[i]});
    }
  }

  int64_t of(Inputs inputs) const {
    int64_t start = 0;
    for (const IndexedAxis &axis : axes_)
      start += std::clamp<int64_t>(axis.read(inputs[axis.operand]), 0, axis.most) * axis.stride;
    return start;
  }

private:
  using Reader = int64_t (*)(const void *index);
  struct IndexedAxis {
    size_t operand;
    Reader read;
    int64_t most, stride;
  };

  static Reader reader_of(DType dtype) {
    return with_type(dtype, [](auto element) -> Reader {
      using T = decltype(element);
      if constexpr (is_int<T>)
        return [](const void *index) { return as_index(*static_cast<const T *>(index)); };
      throw Unsupported("an index is no integer");
    });
  }

  std::vector<IndexedAxis> axes_;
};

Kernel dynamic_slice(const Op &op) {
  const Type &operand = op.operand(0), &result = op.result();
  require_operands(op, operand.dims.size() + 1);
  const Dims &sizes = op.integers("slice_sizes", operand.dims.size());
  Op::require(result.dims == sizes);
  DynamicStart start(op, 1, operand.dims, sizes);
  BoxCopy copy(axes_of(sizes, strides_of(operand.dims), strides_of(sizes)), result.element_bytes());
  return [copy, start](Inputs inputs, Outputs outputs) { copy.run(inputs[0], start.of(inputs), outputs[0], 0); };
}

Kernel dynamic_update_slice(const Op &op) {
  Type operand = op.operand(0);
  const Type &update = op.operand(1);
  require_operands(op, operand.dims.size() + 2);
  Op::require(op.result() == operand && update.dtype == operand.dtype);
  DynamicStart start(op, 2, operand.dims, update.dims);
  BoxCopy copy(axes_of(update.dims, strides_of(update.dims), strides_of(operand.dims)), operand.element_bytes());
  return [copy, start, operand](Inputs inputs, Outputs outputs) {
    copy_all(operand, inputs[0], outputs[0]);
    copy.run(inputs[1], 0, outputs[0], start.of(inputs));
  };
}

} // namespace

const KernelTable &movement_kernels() {
  static const KernelTable table = {
      {"broadcast_in_dim", broadcast_in_dim},
      {"concatenate", concatenate},
      {"dynamic_slice", dynamic_slice},
      {"dynamic_update_slice", dynamic_update_slice},
      {"optimization_barrier", optimization_barrier},
      {"pad", pad},
      {"reshape", reshape},
      {"reverse", reverse},
      {"slice", slice},
      {"transpose", transpose},
  };
  return table;
}

} // namespace disc::interpreter
