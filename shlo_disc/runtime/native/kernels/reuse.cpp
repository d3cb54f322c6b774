// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reuse.h"

#include <atomic>
#include <limits>

namespace disc {

namespace {

constexpr int kHashBits = 8;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u; // the golden ratio, so that neighbours get different hashes

struct Use {
  std::atomic<const void *> matrix{nullptr};
  std::atomic<int64_t> read{0}; // bytes that all products had read then
};

Use uses[1 << kHashBits]; // the last one of each hash of an address
std::atomic<int64_t> all_read{0};

Use &use_of(const void *matrix) {
  return uses[reinterpret_cast<uintptr_t>(matrix) / 64 * kGolden >> (64 - kHashBits)];
}

} // namespace

int64_t bytes_since(const void *matrix, int64_t bytes) {
  constexpr auto relaxed = std::memory_order_relaxed;
  int64_t now = all_read.fetch_add(bytes, relaxed) + bytes;
  Use &use = use_of(matrix);
  int64_t before = use.read.exchange(now, relaxed);
  bool is_same = use.matrix.exchange(matrix, relaxed) == matrix;
  return is_same ? now - before : std::numeric_limits<int64_t>::max();
}

} // namespace disc
