// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes in reverse Polish notation: what of an argument's size is left of a symbol that is solved from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace disc {

enum class SizeOperation { number, size, symbol, add, multiply, floordiv, mod, max, min };

/// A step of an expression. value: the number, the symbol's, or that of a dimension among those of all arguments.
struct SizeStep {
  SizeOperation operation = SizeOperation::number;
  int64_t value = 0;
};

inline constexpr size_t kMostSizes = 64; // that an expression holds at a time

/// The operation of a name; none for another name.
std::optional<SizeOperation> size_operation(std::string_view name);

/// Whether the steps make one value of no more than kMostSizes at a time. Its symbols are not looked at.
bool is_well_formed(std::span<const SizeStep> steps);

/// The value of well-formed steps; none where it does not fit 64 bits, or divides by zero.
std::optional<int64_t> value_of(std::span<const SizeStep> steps, std::span<const int64_t> dims,
                                std::span<const int64_t> symbols);

} // namespace disc
