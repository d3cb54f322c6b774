// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guard_pages.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace disc {

namespace {

constexpr unsigned char kUnwritten = 0xFF;

size_t page_size() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t whole_pages(size_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

bool is_unwritten(const unsigned char *begin, const unsigned char *end) {
  return std::all_of(begin, end, [](unsigned char byte) { return byte == kUnwritten; });
}

} // namespace

void *guarded_allocate(size_t bytes, size_t alignment) {
  size_t inner = whole_pages(bytes);
  void *mapping = mmap(nullptr, inner + 2 * page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return nullptr;
  auto *begin = static_cast<unsigned char *>(mapping) + page_size();
  if (mprotect(begin, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, inner + 2 * page_size());
    return nullptr;
  }
  std::memset(begin, kUnwritten, inner);
  return begin + (inner - bytes) / alignment * alignment;
}

void guarded_release(void *address, size_t bytes) noexcept {
  auto *block = static_cast<unsigned char *>(address);
  auto *begin = block - reinterpret_cast<uintptr_t>(block) % page_size();
  size_t inner = whole_pages(bytes);
  if (!is_unwritten(begin, block) || !is_unwritten(block + bytes, begin + inner)) {
    std::fprintf(stderr, "shlo_disc: a kernel wrote beside a block of %zu bytes\n", bytes);
    std::abort();
  }
  munmap(begin - page_size(), inner + 2 * page_size());
}

void *guarded_empty() {
  static void *const page = mmap(nullptr, page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : page;
}

} // namespace disc
