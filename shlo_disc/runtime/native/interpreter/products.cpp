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

constexpr int64_t lanes = 16;

/// Sums of a row of terms, in several parts.
template <typename To> To inner_product(const To *a, const To *b, int64_t k) {
  To parts[lanes] = {}, sum{};
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane)
      parts[lane] += Multiply::of(a[p + lane], b[p + lane]);
  for (; p < k; ++p)
    parts[p % lanes] += Multiply::of(a[p], b[p]);
  for (const To &part : parts)
    sum += part;
  return sum;
}

/// Adds four rows to sums, each multiplied by a factor. The inner loop's size is known so that it becomes vectors.
template <typename To>
void add_four_rows(const To *__restrict factors, const To *__restrict rows, To *__restrict sums, int64_t n) {
  const To *second = rows + n, *third = second + n, *fourth = third + n;
  To a = factors[0], b = factors[1], c = factors[2], d = factors[3];
  auto add = [=](int64_t i) {
    To sum = sums[i] + Multiply::of(a, rows[i]) + Multiply::of(b, second[i]);
    sums[i] = sum + Multiply::of(c, third[i]) + Multiply::of(d, fourth[i]);
  };
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (int64_t i = j; i < j + lanes; ++i)
      add(i);
  for (; j < n; ++j)
    add(j);
}

/// C = A B for matrices whose rows lie one behind the other.
template <typename To>
void multiply(const To *__restrict a, const To *__restrict b, To *__restrict c, int64_t m, int64_t k, int64_t n) {
  if (n == 1) {
    for (int64_t i = 0; i < m; ++i)
      c[i] = inner_product(a + i * k, b, k);
    return;
  }
  std::fill_n(c, m * n, To{});
  for (int64_t i = 0; i < m; ++i) {
    To *sums = c + i * n;
    int64_t p = 0;
    for (; p + 4 <= k; p += 4)
      add_four_rows(a + i * k + p, b + p * n, sums, n);
    for (; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        sums[j] += Multiply::of(a[i * k + p], b[p * n + j]);
  }
}

template <typename T> Kernel dot_kernel(const Op &op, const ProductAxes &lhs, const ProductAxes &rhs) {
  using To = Term<T>;
  Pack pack_lhs = pack_for<To>(op.operand(0).dtype), pack_rhs = pack_for<To>(op.operand(1).dtype);
  Walk<1> lhs_walk = packed_walk(op.operand(0), {&lhs.batch, &lhs.free, &lhs.contracted});
  Walk<1> rhs_walk = packed_walk(op.operand(1), {&rhs.batch, &rhs.contracted, &rhs.free});
  int64_t batch = product_of(lhs.batch_sizes), m = product_of(lhs.free_sizes), n = product_of(rhs.free_sizes);
  int64_t k = product_of(lhs.contracted_sizes);
  if (op.result().count() == 0) // other sizes may be larger than any memory
    return [](Inputs, Outputs) {};
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
