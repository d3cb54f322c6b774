// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions of sizes, computed without overflow.
#pragma once

#include <cstdint>
#include <vector>

namespace disc::pjrt {

/// One step: a number, a symbol, or an operation on the results of two earlier steps.
struct SizeStep {
  enum Kind : int64_t { constant, symbol, add, multiply, floor_divide, modulo, minimum, maximum };
  int64_t kind;
  int64_t a, b; // the number or the symbol's position; the positions of two earlier steps
};

/// The results of all steps, for these values of the symbols; false where one does not fit 64 bits, divides by zero, or
/// refers to what is not there.
bool evaluate(const std::vector<SizeStep> &steps, const std::vector<int64_t> &symbols, std::vector<int64_t> &values);

} // namespace disc::pjrt
