// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "combine.h"
#include "reductions.h"

#include <algorithm>
#include <numeric>

namespace disc::interpreter {

namespace {

/// Sorts numbers of elements by merging runs, which ends with a permutation whatever the comparison says: it may be one
/// that is no order, for which the standard's sorts may read beyond their arrays.
template <typename Less> void merge_sort(std::vector<int64_t> &order, std::vector<int64_t> &other, const Less &less) {
  size_t count = order.size();
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t first = 0; first < count; first += 2 * width) {
      size_t middle = std::min(first + width, count), end = std::min(first + 2 * width, count);
      size_t left = first, right = middle;
      for (size_t place = first; place < end; ++place) {
        bool takes_right = right < end && (left == middle || less(order[right], order[left]));
        other[place] = order[takes_right ? right++ : left++];
      }
    }
    order.swap(other);
  }
}

struct Sort {
  std::vector<Type> types;
  Kernel before;
  int64_t size = 0, step = 0;
  std::vector<int64_t> lines; // where each begins

  explicit Sort(const Op &op) : types(op.results) {
    size_t count = types.size();
    Op::require(count > 0 && op.operands == types && op.bodies.size() == 1);
    if (count > most_reduced)
      throw Unsupported("too many arrays are sorted at a time");
    const Dims &dims = types[0].dims;
    int64_t dimension = op.integer("dimension");
    require_axes({dimension}, types[0].rank());
    auto axis = static_cast<size_t>(dimension);
    const Body &body = op.body();
    Op::require(body.run && body.arguments.size() == 2 * count && body.results.size() == 1);
    Op::require(body.results[0] == Type{DType::i1, {}});
    for (size_t k = 0; k < count; ++k) {
      Type element{types[k].dtype, {}};
      Op::require(types[k].dims == dims && body.arguments[2 * k] == element && body.arguments[2 * k + 1] == element);
    }
    before = body.run;
    size = dims[axis];
    step = strides_of(dims)[axis];
    for (int64_t i = 0; size > 0 && i < types[0].count() / size; ++i)
      lines.push_back(i / step * step * size + i % step);
  }

  void run(Inputs inputs, Outputs outputs) const {
    auto length = static_cast<size_t>(size);
    std::vector<int64_t> order(length), other(length);
    for (int64_t line : lines) {
      std::iota(order.begin(), order.end(), 0);
      merge_sort(order, other, [&](int64_t a, int64_t b) { return is_before(inputs, line + a * step, line + b * step); });
      for (size_t k = 0; k < types.size(); ++k)
        with_width(types[k].element_bytes(), [&]<typename T>(T) {
          const T *from = static_cast<const T *>(inputs[k]) + line;
          T *to = static_cast<T *>(outputs[k]) + line;
          for (size_t i = 0; i < length; ++i)
            to[static_cast<int64_t>(i) * step] = from[order[i] * step];
        });
    }
  }

private:
  bool is_before(Inputs inputs, int64_t a, int64_t b) const {
    const void *elements[2 * most_reduced];
    for (size_t k = 0; k < types.size(); ++k) {
      elements[2 * k] = static_cast<const char *>(inputs[k]) + a * types[k].element_bytes();
      elements[2 * k + 1] = static_cast<const char *>(inputs[k]) + b * types[k].element_bytes();
    }
    uint8_t is_before = 0;
    void *result = &is_before;
    before(elements, &result);
    return is_before != 0;
  }
};

} // namespace

Kernel sort_kernel(const Op &op) {
  return [sort = Sort(op)](Inputs inputs, Outputs outputs) { sort.run(inputs, outputs); };
}

} // namespace disc::interpreter
