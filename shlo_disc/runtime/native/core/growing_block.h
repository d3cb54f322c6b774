// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A block that grows where it is: address space is reserved once, and what it holds already stays warm.
#pragma once

#include <cstddef>

namespace disc {

/// Plain data: whoever holds one releases it.
struct GrowingBlock {
  char *address = nullptr;
  size_t ready = 0; // bytes from `address` on that may be used

  /// Most bytes that a block can grow to.
  static constexpr size_t kMost = size_t{1} << 36;

  /// Address space without memory; `address` is null when the system refuses it.
  static GrowingBlock reserve() noexcept;

  /// Makes at least `bytes` usable; false when the system refuses.
  bool grow(size_t bytes) noexcept;

  void release() noexcept;
};

/// Gives the pages of [address, address + bytes) memory now rather than with the first write.
void populate(void *address, size_t bytes) noexcept;

} // namespace disc
