// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much memory products have read since they read a matrix last: an estimate of whether a cache still has it.
#pragma once

#include <cstdint>

namespace disc {

/// Notes that `bytes` of packed matrices, those of `matrix`, are read now. Returns the bytes that all products of the
/// process have read since it was read last, its own included; the largest number where that was too long ago to know.
/// An estimate: threads that ask at a time may get each other's numbers.
int64_t bytes_since(const void *matrix, int64_t bytes);

} // namespace disc
