// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory on the boundary of a cache line.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

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

/// A copy at a multiple of 64. Throws std::bad_alloc.
inline std::shared_ptr<const char> aligned_copy(std::string_view bytes) {
  std::shared_ptr<char> copy(static_cast<char *>(std::aligned_alloc(64, (bytes.size() / 64 + 1) * 64)), std::free);
  if (!copy)
    throw std::bad_alloc();
  if (!bytes.empty())
    std::memcpy(copy.get(), bytes.data(), bytes.size());
  return copy;
}

} // namespace disc
