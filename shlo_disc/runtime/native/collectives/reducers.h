// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise combinations of arrays.
#pragma once

#include "core/dtype.h"

#include <cstdint>

namespace disc {

/// As in transforms/expand/collectives.py.
enum class Reduction : int64_t { add = 0, multiply, maximum, minimum, bit_and, bit_or, bit_xor };

/// target[i] = target[i] op source[i].
using Reducer = void (*)(void *target, const void *source, int64_t count);

/// Null for a combination that has no reducer: elements of other types are converted before.
Reducer reducer_of(Reduction reduction, DType dtype);

} // namespace disc
