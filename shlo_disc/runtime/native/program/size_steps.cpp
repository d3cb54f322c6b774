// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "size_steps.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace disc {

namespace {

constexpr std::array<std::pair<std::string_view, SizeOperation>, 9> kOperations = {{
    {"number", SizeOperation::number},
    {"size", SizeOperation::size},
    {"symbol", SizeOperation::symbol},
    {"add", SizeOperation::add},
    {"multiply", SizeOperation::multiply},
    {"floordiv", SizeOperation::floordiv},
    {"mod", SizeOperation::mod},
    {"max", SizeOperation::max},
    {"min", SizeOperation::min},
}};

bool is_operand(SizeOperation operation) {
  return operation == SizeOperation::number || operation == SizeOperation::size || operation == SizeOperation::symbol;
}

/// Quotient, rounded down, or remainder, with the divisor's sign, as in Python.
std::optional<int64_t> divided(SizeOperation operation, int64_t left, int64_t right) {
  if (right == 0 || (right == -1 && left == std::numeric_limits<int64_t>::min()))
    return std::nullopt;
  int64_t rest = left % right;
  bool adjust = rest != 0 && (rest < 0) != (right < 0);
  if (operation == SizeOperation::mod)
    return adjust ? rest + right : rest;
  return left / right - (adjust ? 1 : 0);
}

std::optional<int64_t> combined(SizeOperation operation, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (operation) {
  case SizeOperation::add:
    return __builtin_add_overflow(left, right, &result) ? std::nullopt : std::optional(result);
  case SizeOperation::multiply:
    return __builtin_mul_overflow(left, right, &result) ? std::nullopt : std::optional(result);
  case SizeOperation::max:
    return std::max(left, right);
  case SizeOperation::min:
    return std::min(left, right);
  default:
    return divided(operation, left, right);
  }
}

int64_t operand(const SizeStep &step, std::span<const int64_t> dims, std::span<const int64_t> symbols) {
  if (step.operation == SizeOperation::number)
    return step.value;
  return (step.operation == SizeOperation::size ? dims : symbols)[static_cast<size_t>(step.value)];
}

} // namespace

std::optional<SizeOperation> size_operation(std::string_view name) {
  for (const auto &[known, operation] : kOperations)
    if (known == name)
      return operation;
  return std::nullopt;
}

bool is_well_formed(std::span<const SizeStep> steps) {
  size_t held = 0;
  for (const SizeStep &step : steps) {
    if (!is_operand(step.operation) && held < 2)
      return false;
    held = is_operand(step.operation) ? held + 1 : held - 1;
    if (held > kMostSizes)
      return false;
  }
  return held == 1;
}

std::optional<int64_t> value_of(std::span<const SizeStep> steps, std::span<const int64_t> dims,
                                std::span<const int64_t> symbols) {
  std::array<int64_t, kMostSizes> stack;
  size_t held = 0;
  for (const SizeStep &step : steps) {
    if (is_operand(step.operation)) {
      stack[held++] = operand(step, dims, symbols);
      continue;
    }
    std::optional<int64_t> result = combined(step.operation, stack[held - 2], stack[held - 1]);
    if (!result)
      return std::nullopt;
    --held;
    stack[held - 1] = *result;
  }
  return stack[0];
}

} // namespace disc
