// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory on the boundary of a cache line.
#pragma once

#include <cstddef>
#include <cstdlib>

namespace disc {

/// Some bytes, freed with their owner; the address is null when there was no memory. `bytes` is a multiple of 64.
class AlignedMemory {
public:
  AlignedMemory() = default; // none
  explicit AlignedMemory(size_t bytes) : address_(static_cast<char *>(std::aligned_alloc(64, bytes))) {}
  ~AlignedMemory() { std::free(address_); }
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;

  /// Other bytes in place of these.
  void replace(size_t bytes) {
    std::free(address_);
    address_ = static_cast<char *>(std::aligned_alloc(64, bytes));
  }

  char *address() const { return address_; }

private:
  char *address_ = nullptr;
};

} // namespace disc
