// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "growing_block.h"

#include <cstdint>
#include <sys/mman.h>

namespace disc {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2u << 20;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

} // namespace

GrowingBlock GrowingBlock::reserve() noexcept {
  // Huge pages need an aligned start: reserve one more, and unmap what lies around the aligned part.
  size_t wide = kMost + kHugePage;
  void *found = mmap(nullptr, wide, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED)
    return {};
  size_t before = -reinterpret_cast<uintptr_t>(found) % kHugePage;
  char *address = static_cast<char *>(found) + before;
  if (before != 0)
    munmap(found, before);
  munmap(address + kMost, kHugePage - before);
  return {address, 0};
}

bool GrowingBlock::grow(size_t bytes) noexcept {
  size_t wanted = round_up(bytes, kHugePage);
  if (wanted <= ready)
    return true;
  if (wanted > kMost || mprotect(address + ready, wanted - ready, PROT_READ | PROT_WRITE) != 0)
    return false;
  madvise(address + ready, wanted - ready, MADV_HUGEPAGE);
  ready = wanted;
  return true;
}

void GrowingBlock::release() noexcept { munmap(address, kMost); }

void populate(void *address, size_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  uintptr_t begin = reinterpret_cast<uintptr_t>(address) / kPage * kPage;
  size_t length = round_up(reinterpret_cast<uintptr_t>(address) + bytes - begin, kPage);
  if (madvise(reinterpret_cast<void *>(begin), length, MADV_POPULATE_WRITE) == 0)
    return;
#endif
  // Older systems: one write a page. The contents are kept, for a page at the edge may be somebody else's.
  for (size_t offset = 0; offset < bytes; offset += kPage) {
    auto *place = static_cast<volatile char *>(address) + offset;
    *place = *place;
  }
}

} // namespace disc
