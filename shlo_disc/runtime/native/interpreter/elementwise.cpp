// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Choices between elements, whose operands may be single numbers, and the table of all elementwise ops.
#include "elementwise.h"

#include <cstring>

namespace disc::interpreter {

Kernel kernel_of(Loop loop, const Op &op) {
  return [loop, count = op.result().count()](Inputs inputs, Outputs outputs) { loop(inputs, outputs[0], count); };
}

void check_alike(const Op &op, size_t arity) {
  Op::require(op.operands.size() == arity && op.results.size() == 1 && op.result().dims == op.operand(0).dims);
  for (const Type &operand : op.operands)
    Op::require(operand == op.operand(0));
}

void refuse_type() { throw Unsupported("an elementwise op of a type that it does not take"); }

namespace {

template <typename T> void select_elements(Inputs inputs, void *output, int64_t count) {
  const auto *predicate = static_cast<const Bool *>(inputs[0]);
  const T *on_true = static_cast<const T *>(inputs[1]), *on_false = static_cast<const T *>(inputs[2]);
  T *__restrict to = static_cast<T *>(output);
  for (int64_t i = 0; i < count; ++i)
    to[i] = predicate[i] ? on_true[i] : on_false[i];
}

Kernel select_kernel(const Op &op) {
  const Type &predicate = op.operand(0), &type = op.result();
  Op::require(op.operands.size() == 3 && op.results.size() == 1 && op.operand(1) == type && op.operand(2) == type);
  Op::require(predicate.dtype == DType::i1 && (predicate.rank() == 0 || predicate.dims == type.dims));
  if (predicate.rank() == 0)
    return [bytes = static_cast<size_t>(type.bytes())](Inputs inputs, Outputs outputs) {
      if (bytes != 0)
        std::memcpy(outputs[0], inputs[*static_cast<const Bool *>(inputs[0]) ? 1 : 2], bytes);
    };
  return kernel_of(with_width(type.element_bytes(), []<typename T>(T) -> Loop { return select_elements<T>; }), op);
}

/// A limit's step is 0 where it is a single number.
using ClampLoop = void (*)(Inputs inputs, void *output, int64_t count, int64_t least_step, int64_t most_step);

template <typename T>
void clamp_elements(Inputs inputs, void *output, int64_t count, int64_t least_step, int64_t most_step) {
  using Number = Computed<T>;
  const T *least = static_cast<const T *>(inputs[0]), *from = static_cast<const T *>(inputs[1]),
          *most = static_cast<const T *>(inputs[2]);
  T *__restrict to = static_cast<T *>(output);
  for (int64_t i = 0; i < count; ++i, least += least_step, most += most_step) {
    Number raised = Maximum::of(static_cast<Number>(*least), static_cast<Number>(from[i]));
    to[i] = static_cast<T>(Minimum::of(raised, static_cast<Number>(*most)));
  }
}

Kernel clamp_kernel(const Op &op) {
  Op::require(op.operands.size() == 3 && op.results.size() == 1);
  const Type &type = op.result();
  auto step_of = [&](const Type &limit) -> int64_t {
    Op::require(limit.dtype == type.dtype && (limit.rank() == 0 || limit.dims == type.dims));
    return limit.rank() != 0;
  };
  Op::require(op.operand(1) == type);
  ClampLoop loop = with_type(type.dtype, []<typename T>(T) -> ClampLoop {
    if constexpr (is_complex<T>)
      refuse_type();
    else
      return clamp_elements<T>;
  });
  int64_t count = type.count(), least_step = step_of(op.operand(0)), most_step = step_of(op.operand(2));
  return [=](Inputs inputs, Outputs outputs) { loop(inputs, outputs[0], count, least_step, most_step); };
}

KernelTable all_kernels() {
  KernelTable all = {{"clamp", clamp_kernel}, {"select", select_kernel}};
  for (const KernelTable *table : {&unary_kernels(), &binary_kernels(), &conversion_kernels()})
    all.insert(table->begin(), table->end());
  return all;
}

} // namespace

const KernelTable &elementwise_kernels() {
  static const KernelTable table = all_kernels();
  return table;
}

} // namespace disc::interpreter
