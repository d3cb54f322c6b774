// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tensor_map.h"

#include <algorithm>
#include <vector>

namespace disc::cuda {

namespace {

constexpr uint64_t kAlignment = 16;
constexpr uint64_t kMostElements = (uint64_t{1} << 31) - 512; // along an axis: coordinates are ints, and tiles reach over
constexpr uint64_t kStrideEnd = uint64_t{1} << 40;

// CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion; the rest is 0: no interleaving, zeros outside.
constexpr int kBytes = 0, kWordsOf16Bits = 1, kSwizzle128 = 3, kPromotion256 = 3;

struct Axis {
  int64_t size, stride; // in elements
};

/// A tensor, the axis of neighbours first.
struct Tensor {
  const void *address;
  std::vector<Axis> axes;
};

/// Along an axis of the batch without a step, all matrices are the first one, which is the one that the kernel asks for.
Axis batch_axis(int64_t size, int64_t stride) { return {stride == 0 ? std::min<int64_t>(size, 1) : size, stride}; }

Tensor side_of(const DiscProduct &p, bool is_left, bool depth_inside) {
  Axis rows{is_left ? p.m : p.n, is_left ? p.a_m : p.b_n}, depth{p.k, is_left ? p.a_k : p.b_k};
  Tensor tensor{is_left ? p.a : p.b, {depth_inside ? depth : rows, depth_inside ? rows : depth}};
  for (int64_t i = p.batch_rank; i-- > 0;)
    tensor.axes.push_back(batch_axis(p.batch[i].size, is_left ? p.batch[i].a : p.batch[i].b));
  return tensor;
}

Tensor operand_of(const OperandByMap &operand, std::span<const int64_t> words, int64_t element_bytes) {
  int64_t address = operand.pointer.among(words) + operand.start * element_bytes;
  Tensor tensor{reinterpret_cast<const void *>(address), {}};
  for (const auto &[size, stride] : operand.axes) {
    Axis axis{size.among(words), stride.among(words)};
    tensor.axes.push_back(tensor.axes.size() < 2 ? axis : batch_axis(axis.size, axis.stride));
  }
  return tensor;
}

/// Sizes in elements, and from the second axis on strides in bytes, as the driver is told them.
struct Extents {
  std::vector<uint64_t> sizes, strides;
};

std::optional<Extents> extents_of(const Tensor &tensor, uint64_t element_bytes) {
  Extents found;
  if (reinterpret_cast<uint64_t>(tensor.address) % kAlignment)
    return std::nullopt;
  uint64_t row = 0;
  for (const auto &[size, stride] : tensor.axes) {
    if (size < 1 || static_cast<uint64_t>(size) > kMostElements)
      return std::nullopt;
    found.sizes.push_back(static_cast<uint64_t>(size));
    if (found.sizes.size() == 1) {
      row = found.sizes[0] * element_bytes;
      continue;
    }
    // A step that is never taken may be any.
    uint64_t step = size == 1 ? (row + kAlignment - 1) / kAlignment * kAlignment
                              : static_cast<uint64_t>(stride) * element_bytes;
    if (stride < 0 || step == 0 || step % kAlignment || step >= kStrideEnd)
      return std::nullopt;
    found.strides.push_back(step);
  }
  return found.strides[0] < row ? std::nullopt : std::optional(found);
}

std::optional<TensorMap> map_of(const Tensor &tensor, const TensorMapKernel &of) {
  std::optional<Extents> extents = extents_of(tensor, static_cast<uint64_t>(of.element_bytes));
  if (!extents)
    return std::nullopt;
  auto rank = static_cast<unsigned>(tensor.axes.size());
  std::vector<unsigned> boxes(rank, 1), steps(rank, 1);
  boxes[0] = static_cast<unsigned>(of.box_columns), boxes[1] = static_cast<unsigned>(of.box_rows);
  const Driver &driver = Driver::instance();
  TensorMap map{};
  int type = of.element_bytes == 1 ? kBytes : kWordsOf16Bits;
  Code code = driver.encode_tiled(&map, type, rank, const_cast<void *>(tensor.address), extents->sizes.data(),
                                  extents->strides.data(), boxes.data(), steps.data(), 0, kSwizzle128, kPromotion256, 0);
  if (code == kInvalidValue)
    return std::nullopt;
  driver.check(code, "describe a matrix to the GPU");
  return map;
}

} // namespace

std::optional<std::array<TensorMap, 2>> tensor_maps_of(const DiscProduct &product, const KernelByMaps &spec) {
  std::optional<TensorMap> lhs = map_of(side_of(product, true, spec.lhs_depth_inside), spec);
  std::optional<TensorMap> rhs = lhs ? map_of(side_of(product, false, spec.rhs_depth_inside), spec) : std::nullopt;
  return rhs ? std::optional(std::array{*lhs, *rhs}) : std::nullopt;
}

std::optional<std::vector<TensorMap>> tensor_maps_of(std::span<const int64_t> words, const KernelByMapsOfWords &spec) {
  if (spec.operands[0].axes[1].size.among(words) < spec.least_rows)
    return std::nullopt;
  std::vector<TensorMap> maps;
  for (const OperandByMap &operand : spec.operands) {
    std::optional<TensorMap> map = map_of(operand_of(operand, words, spec.element_bytes), spec);
    if (!map)
      return std::nullopt;
    maps.push_back(*map);
  }
  return maps;
}

} // namespace disc::cuda
