// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Roughly how many nanoseconds ops take by the interpreter's kernels.
#include "work.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace disc::interpreter {

namespace {

constexpr int64_t op_work = 30;
constexpr double most_work = 1e15;

/// For an element: of ops in general, of functions of the C library, and of a body that is called, beside its ops.
constexpr double element_work = 0.5, function_work = 4, body_work = 20;

bool is_function(std::string_view name) {
  static constexpr std::string_view names[] = {
      "atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "power",
      "remainder", "rng_bit_generator", "sine", "tan", "tanh",
  };
  return std::ranges::find(names, name) != std::end(names);
}

double product_of(const std::vector<int64_t> &sizes) {
  double product = 1;
  for (int64_t size : sizes)
    product *= static_cast<double>(std::max<int64_t>(size, 1));
  return product;
}

int64_t size_at(const Type &type, int64_t axis) {
  Op::require(axis >= 0 && axis < type.rank());
  return type.dims[static_cast<size_t>(axis)];
}

/// How many terms there are for each element of a result, or of an operand where that is larger. Throws Unsupported.
double terms_of(const Op &op) {
  if (op.name == "dot_general" && op.operands.size() == 2) {
    double terms = 1;
    for (int64_t axis : op.integers("lhs_contracting_dimensions"))
      terms *= static_cast<double>(size_at(op.operands[0], axis));
    return terms;
  }
  if (op.name == "convolution" && op.operands.size() == 2) {
    int64_t features = size_at(op.operands[1], op.integer("kernel_output_feature_dimension"));
    return product_of(op.operands[1].dims) / static_cast<double>(std::max<int64_t>(features, 1));
  }
  if (op.name == "reduce_window" || op.name == "select_and_scatter")
    return product_of(op.integers("window_dimensions"));
  if (op.name == "cholesky" || op.name == "triangular_solve")
    return op.operands[0].dims.empty() ? 1 : static_cast<double>(op.operands[0].dims.back());
  if ((op.name == "sort" || op.name == "fft") && !op.operands.empty())
    return static_cast<double>(std::bit_width(static_cast<uint64_t>(op.operands[0].count())));
  return 1;
}

} // namespace

int64_t work_of(const Op &op) {
  int64_t written = 0, read = 0;
  for (const Type &type : op.results)
    written = std::max(written, type.count());
  for (const Type &type : op.operands)
    read = std::max(read, type.count());
  bool reads_all = !op.bodies.empty(); // others read what they write
  double elements = static_cast<double>(reads_all ? std::max(read, written) : written) * terms_of(op);
  double each = is_function(op.name) ? function_work : element_work;
  for (const Body &body : op.bodies)
    if (body.only_op.empty())
      each += body_work + static_cast<double>(body.work);
  return op_work + static_cast<int64_t>(std::min(elements * each, most_work));
}

} // namespace disc::interpreter
