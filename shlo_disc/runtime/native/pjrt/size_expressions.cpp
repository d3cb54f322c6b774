// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "size_expressions.h"

#include <algorithm>

namespace disc::pjrt {

namespace {

/// Rounded towards minus infinity, as are Python's.
bool divide(int64_t a, int64_t b, int64_t &quotient, int64_t &remainder) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return false;
  quotient = a / b;
  remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return true;
}

bool apply(int64_t kind, int64_t a, int64_t b, int64_t &value) {
  int64_t other;
  switch (kind) {
  case SizeStep::add:
    return !__builtin_add_overflow(a, b, &value);
  case SizeStep::multiply:
    return !__builtin_mul_overflow(a, b, &value);
  case SizeStep::floor_divide:
    return divide(a, b, value, other);
  case SizeStep::modulo:
    return divide(a, b, other, value);
  case SizeStep::minimum:
    value = std::min(a, b);
    return true;
  case SizeStep::maximum:
    value = std::max(a, b);
    return true;
  default:
    return false;
  }
}

} // namespace

bool evaluate(const std::vector<SizeStep> &steps, const std::vector<int64_t> &symbols, std::vector<int64_t> &values) {
  values.clear();
  values.reserve(steps.size());
  for (const SizeStep &step : steps) {
    int64_t value = step.a;
    auto known = [&](int64_t position, size_t count) { return position >= 0 && static_cast<size_t>(position) < count; };
    if (step.kind == SizeStep::symbol) {
      if (!known(step.a, symbols.size()))
        return false;
      value = symbols[static_cast<size_t>(step.a)];
    } else if (step.kind != SizeStep::constant) {
      if (!known(step.a, values.size()) || !known(step.b, values.size()) ||
          !apply(step.kind, values[static_cast<size_t>(step.a)], values[static_cast<size_t>(step.b)], value))
        return false;
    }
    values.push_back(value);
  }
  return true;
}

} // namespace disc::pjrt
