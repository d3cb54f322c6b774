// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "products.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

/// The axes of an operand by what they are in a product.
struct ProductAxes {
  Dims batch, contracted, free;
  Dims batch_sizes, contracted_sizes, free_sizes;

  ProductAxes(const Type &type, const Dims &batch_axes, const Dims &contracted_axes)
      : batch(batch_axes), contracted(contracted_axes) {
    Dims named = batch;
    named.insert(named.end(), contracted.begin(), contracted.end());
    require_axes(named, type.rank());
    for (int64_t axis = 0; axis < type.rank(); ++axis)
      if (std::ranges::find(named, axis) == named.end())
        free.push_back(axis);
    auto sizes = [&](const Dims &axes) {
      Dims out;
      for (int64_t axis : axes)
        out.push_back(type.dims[static_cast<size_t>(axis)]);
      return out;
    };
    batch_sizes = sizes(batch);
    contracted_sizes = sizes(contracted);
    free_sizes = sizes(free);
  }
};

int64_t product_of(const Dims &sizes) { return Type{DType::i8, sizes}.count(); }

/// C = A B for matrices one behind the other.
template <typename To>
void multiply(const To *__restrict a, const To *__restrict b, To *__restrict c, int64_t m, int64_t k, int64_t n) {
  std::fill_n(c, m * n, To{});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      To factor = a[i * k + p];
      const To *__restrict row = b + p * n;
      To *__restrict sums = c + i * n;
      for (int64_t j = 0; j < n; ++j)
        sums[j] += factor * row[j];
    }
}

template <typename T> Kernel dot_kernel(const Op &op, const ProductAxes &lhs, const ProductAxes &rhs) {
  using To = Term<T>;
  Pack pack_lhs = pack_for<To>(op.operand(0).dtype), pack_rhs = pack_for<To>(op.operand(1).dtype);
  Walk<1> lhs_walk = packed_walk(op.operand(0), {&lhs.batch, &lhs.free, &lhs.contracted});
  Walk<1> rhs_walk = packed_walk(op.operand(1), {&rhs.batch, &rhs.contracted, &rhs.free});
  int64_t batch = product_of(lhs.batch_sizes), m = product_of(lhs.free_sizes), n = product_of(rhs.free_sizes);
  int64_t k = product_of(lhs.contracted_sizes);
  return [=](Inputs inputs, Outputs outputs) {
    std::vector<To> a(static_cast<size_t>(batch * m * k)), b(static_cast<size_t>(batch * k * n));
    std::vector<To> sums(static_cast<size_t>(m * n));
    pack_lhs(lhs_walk, inputs[0], a.data());
    pack_rhs(rhs_walk, inputs[1], b.data());
    T *to = static_cast<T *>(outputs[0]);
    for (int64_t i = 0; i < batch; ++i) {
      multiply(a.data() + i * m * k, b.data() + i * k * n, sums.data(), m, k, n);
      for (const To &sum : sums)
        *to++ = static_cast<T>(sum);
    }
  };
}

/// An algorithm that computes with fewer bits is the compiler's.
void require_no_algorithm(const Op &op) {
  for (std::string_view name : {"lhs_precision_type", "rhs_precision_type", "accumulation_type"})
    if (auto found = op.attributes.find(name); found != op.attributes.end())
      if (std::ranges::any_of(found->second.integers, [](int64_t is_there) { return is_there != 0; }))
        throw Unsupported("a product by an algorithm");
}

Kernel dot_general(const Op &op) {
  Op::require(op.operands.size() == 2 && op.results.size() == 1);
  require_no_algorithm(op);
  ProductAxes lhs(op.operand(0), op.integers("lhs_batching_dimensions"), op.integers("lhs_contracting_dimensions"));
  ProductAxes rhs(op.operand(1), op.integers("rhs_batching_dimensions"), op.integers("rhs_contracting_dimensions"));
  Op::require(lhs.batch_sizes == rhs.batch_sizes && lhs.contracted_sizes == rhs.contracted_sizes);
  Dims dims = lhs.batch_sizes;
  dims.insert(dims.end(), lhs.free_sizes.begin(), lhs.free_sizes.end());
  dims.insert(dims.end(), rhs.free_sizes.begin(), rhs.free_sizes.end());
  Op::require(op.result().dims == dims);
  return with_result(op, [&]<typename T>(T) { return dot_kernel<T>(op, lhs, rhs); });
}

} // namespace

const KernelTable &product_kernels() {
  static const KernelTable table = {{"convolution", convolution_kernel}, {"dot_general", dot_general}};
  return table;
}

} // namespace disc::interpreter
