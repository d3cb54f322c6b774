// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a caller reads when sizes are not admissible. The wording is jax.export's (shape_poly.py), so that users of
// either meet the same texts. Every function throws Error(shape).
#pragma once

#include "program.h"

#include <cstdint>
#include <span>
#include <string>

namespace disc {

/// Sizes of all dimensions of all arguments, in order.
using Dims = std::span<const int64_t>;

/// Values of all symbols.
using Values = std::span<const int64_t>;

/// size - offset is not a multiple of scale for symbol `index`; symbols before it are solved.
[[noreturn]] void fail_division(const Program &program, Dims dims, Values values, size_t index, int64_t difference);

/// The size that `symbol` is solved from is out of range for 64-bit arithmetic.
[[noreturn]] void fail_overflow(const Program &program, Dims dims, const SymbolSpec &symbol);

/// Symbol `index` breaks its own range; `expected` reads like ">= 1".
[[noreturn]] void fail_range(const Program &program, Dims dims, Values values, size_t index,
                             const std::string &expected);

/// Flat dimension `dim` has another size than its expression.
[[noreturn]] void fail_inconsistent(const Program &program, Dims dims, Values values, size_t dim, int64_t expected);

/// A check of the compiled plan failed.
[[noreturn]] void fail_check(const Program &program, Dims dims, Values values, const CheckSpec &check,
                             std::span<const int64_t> words);

} // namespace disc
