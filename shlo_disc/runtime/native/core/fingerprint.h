// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether memory that others may write is as it was.
#pragma once

#include "thread_pool.h"

#include <array>
#include <cstdint>
#include <vector>

namespace disc {

/// Reads all of some bytes, and tells them from any others of the same number: two that differ have equal fingerprints
/// with a probability of at most 2^-64, whatever they are. Keys are drawn when the process starts.
///
/// The hash is NH of UMAC (Black, Halevi, Krawczyk, Krovetz, Rogaway, 1999) on words of 64 bits: of each block, the sum
/// of the products of neighbouring words with their keys added.
class Fingerprint {
public:
  static constexpr int64_t kBlockBytes = 4096;

  Fingerprint(ThreadPool &pool, const void *data, int64_t bytes);

  bool operator==(const Fingerprint &) const = default;

private:
  std::vector<std::array<uint64_t, 2>> sums_; // one a block
};

} // namespace disc
