// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.h"

#include "available_memory.h"
#include "error.h"
#include "guard_pages.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>

namespace disc {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargeFrom = 1u << 20; // mapped on their own: their pages go back to the system when freed
constexpr size_t kHugePage = 2u << 20;
constexpr size_t kManyPages = 1u << 16; // from here on fresh pages cost more than an idle block's unused part
constexpr int64_t kMost = int64_t{1} << 47; // more than the address space of a process
constexpr int64_t kLargestUnchecked = 64 << 20; // clearing so much takes far longer than asking the system

alignas(kAlignment) char empty_block[kAlignment];

/// Four classes for each doubling, so that at most a quarter of a fresh block is unused.
size_t size_class(int64_t bytes) {
  size_t size = std::max<size_t>(static_cast<size_t>(bytes), 4 * kAlignment);
  size_t step = std::max(std::bit_floor(size - 1) / 4, kAlignment);
  return (size + step - 1) / step * step;
}

/// The largest idle block that serves a size: a bigger warm block beats fresh pages, but not for constants, which stay.
size_t most_for(size_t size) { return size < kManyPages ? 2 * size : 8 * size; }

void *map(size_t size) {
  void *address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

/// Pages that begin at the boundary of a huge one, so that the first use of each 2 MB is one page fault and not 512.
void *map_huge(size_t size) {
  char *found = static_cast<char *>(map(size + kHugePage));
  if (!found)
    return nullptr;
  size_t before = -reinterpret_cast<uintptr_t>(found) % kHugePage;
  if (before != 0)
    munmap(found, before);
  munmap(found + before + size, kHugePage - before);
  madvise(found + before, size, MADV_HUGEPAGE);
  return found + before;
}

void *system_allocate(size_t size) {
  if (size < kLargeFrom)
    return std::aligned_alloc(kAlignment, size);
  return size < kHugePage ? map(size) : map_huge(size);
}

void system_release(Allocation block) {
  if (block.grows)
    GrowingBlock{static_cast<char *>(block.address), block.size}.release();
  else if (block.size < kLargeFrom)
    std::free(block.address);
  else
    munmap(block.address, block.size);
}

} // namespace

Allocator::Allocator(int64_t live_limit, int64_t cache_limit, bool guard_pages)
    : live_limit_(live_limit), cache_limit_(cache_limit), guard_pages_(guard_pages) {}

Allocator::Allocator(int64_t live_limit, int64_t cache_limit, std::shared_ptr<MemorySource> source)
    : live_limit_(live_limit), cache_limit_(cache_limit), guard_pages_(false), source_(std::move(source)) {}

Allocator::~Allocator() { trim(); }

/// A fresh block, null where there is none.
void *Allocator::take_fresh(size_t size) { return source_ ? source_->allocate(size) : system_allocate(size); }

void Allocator::give_back(Allocation block) noexcept {
  if (source_)
    source_->release(block.address, block.size);
  else
    system_release(block);
}

/// Whether the request may be served at all; called with the lock held.
bool Allocator::admit(int64_t bytes) {
  if (fail_in_ > 0 && --fail_in_ == 0)
    return false;
  if (bytes > kMost)
    return false;
  return live_limit_ == 0 || bytes <= live_limit_ - std::min(stats_.live_bytes + awaited_bytes_, live_limit_);
}

/// The reason for which memory is not admitted, and what helps.
std::string Allocator::why_refused(int64_t bytes, BlockKind kind) const {
  if (live_limit_ == 0)
    return "out of memory";
  if (bytes > live_limit_ && kind != BlockKind::constant)
    return "that alone is more than the memory limit of " + std::to_string(live_limit_) +
           " bytes; only a higher memory_limit or smaller sizes help";
  std::string text = "the memory limit is reached: " + std::to_string(live_limit_) + " bytes, of which " +
                     std::to_string(stats_.live_bytes) + " are in use";
  if (kind == BlockKind::constant)
    text += "; each block of packed or copied weights has to fit, so these need a higher limit";
  return text;
}

/// Whether the system has the memory for so many bytes, beside what it has promised for blocks that nobody has written
/// yet. It would end the process that takes more.
bool Allocator::is_available(int64_t bytes) {
  if (bytes < kLargestUnchecked || source_)
    return true;
  {
    std::lock_guard lock(mutex_);
    for (auto [address, size] : large_)
      bytes += unwritten_bytes(address, size);
  }
  return bytes <= available_memory() || (trim() > 0 && bytes <= available_memory());
}

/// A cached block of the class, or of one that may serve it.
Allocation Allocator::take_cached(size_t size, BlockKind kind) {
  size_t most = kind == BlockKind::constant ? size : most_for(size);
  for (auto found = free_.lower_bound(size); found != free_.end() && found->first <= most; ++found) {
    FreeList &list = found->second;
    if (list.addresses.empty())
      continue;
    if (source_) // calls that come again are to find the same addresses, whatever order they gave them back in
      std::iter_swap(std::ranges::min_element(list.addresses), std::prev(list.addresses.end()));
    void *address = list.addresses.back();
    list.addresses.pop_back();
    list.last_use = ++clock_;
    stats_.cached_bytes -= static_cast<int64_t>(found->first);
    return {address, found->first};
  }
  return {};
}

/// Takes a block out of the cache that is smaller, and that one of `size` will serve for; none when there is none.
Allocation Allocator::take_superseded(size_t size) {
  std::lock_guard lock(mutex_);
  for (auto entry = free_.lower_bound(size); entry != free_.begin();) {
    --entry;
    if (most_for(entry->first) < size)
      break;
    if (entry->second.addresses.empty())
      continue;
    Allocation block{entry->second.addresses.back(), entry->first};
    entry->second.addresses.pop_back();
    stats_.cached_bytes -= static_cast<int64_t>(block.size);
    return block;
  }
  return {};
}

/// Frees smaller blocks, up to the bytes of a fresh one: sizes that grow from call to call leave none of each behind.
void Allocator::supersede(size_t size) noexcept {
  for (size_t bytes = 0; bytes < size;) {
    Allocation block = take_superseded(size);
    if (!block.address)
      return;
    bytes += block.size;
    give_back(block);
  }
}

/// The smallest idle arena that is large enough, else the largest; none when all are in use. Called with the lock held.
GrowingBlock Allocator::take_growing(size_t bytes) {
  if (idle_arenas_.empty())
    return {};
  auto fits = [bytes](const GrowingBlock &block) { return block.ready >= bytes; };
  auto found = std::ranges::find_if(idle_arenas_, fits);
  if (found == idle_arenas_.end())
    --found;
  GrowingBlock block = *found;
  idle_arenas_.erase(found);
  stats_.cached_bytes -= static_cast<int64_t>(block.ready);
  return block;
}

/// Makes an arena of a block, or of a fresh one; no address when the system refuses.
Allocation Allocator::grow_arena(GrowingBlock block, size_t bytes) {
  if (!block.address)
    block = GrowingBlock::reserve();
  if (!block.address)
    return {};
  if (block.grow(bytes) || (trim() > 0 && block.grow(bytes)))
    return {block.address, block.ready, true};
  block.release();
  return {};
}

/// Takes one block out of the class that has been idle longest, or an arena; none when the cache is empty.
Allocation Allocator::evict() {
  auto oldest = free_.end();
  for (auto entry = free_.begin(); entry != free_.end(); ++entry)
    if (!entry->second.addresses.empty() && (oldest == free_.end() || entry->second.last_use < oldest->second.last_use))
      oldest = entry;
  if (oldest == free_.end() && !idle_arenas_.empty()) {
    GrowingBlock smallest = idle_arenas_.front();
    idle_arenas_.erase(idle_arenas_.begin());
    stats_.cached_bytes -= static_cast<int64_t>(smallest.ready);
    return {smallest.address, smallest.ready, true};
  }
  if (oldest == free_.end())
    return {};
  Allocation victim{oldest->second.addresses.back(), oldest->first};
  oldest->second.addresses.pop_back();
  stats_.cached_bytes -= static_cast<int64_t>(victim.size);
  return victim;
}

/// A block that has been handed out; called with the lock held.
void Allocator::count(int64_t bytes, BlockKind kind) {
  if (kind == BlockKind::constant) {
    stats_.constant_bytes += bytes;
    return;
  }
  stats_.live_bytes += bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  if (kind == BlockKind::arena) {
    ++stats_.arena_allocations;
    stats_.last_arena_bytes = bytes;
  } else if (kind == BlockKind::result) {
    ++stats_.result_allocations;
  } else {
    ++stats_.argument_copies;
  }
}

void Allocator::uncount(int64_t bytes, BlockKind kind) {
  (kind == BlockKind::constant ? stats_.constant_bytes : stats_.live_bytes) -= bytes;
}

/// Results and arguments end exactly at the page, aligned as their elements are.
Allocation Allocator::allocate_guarded(int64_t bytes, BlockKind kind) {
  size_t alignment = kind == BlockKind::arena || kind == BlockKind::constant ? kAlignment : 1;
  auto size = static_cast<size_t>(bytes);
  if (void *address = guarded_allocate(size, alignment))
    return {address, size};
  throw AllocationFailure(bytes, "out of memory");
}

Allocation Allocator::allocate(int64_t bytes, BlockKind kind) {
  Allocation block = take(bytes, kind);
  if (bytes < kLargestUnchecked)
    return block;
  try {
    std::lock_guard lock(mutex_);
    large_.emplace(block.address, static_cast<size_t>(bytes));
  } catch (...) {
    release(block, bytes, kind);
    throw;
  }
  return block;
}

/// Nothing is counted before the memory is there: what is refused leaves the statistics as they were.
Allocation Allocator::take(int64_t bytes, BlockKind kind) {
  if (bytes < 0)
    throw AllocationFailure(bytes, "the size overflows");
  if (bytes == 0)
    return {guard_pages_ ? guarded_empty() : empty_block, 0};
  bool grows = kind == BlockKind::arena && static_cast<size_t>(bytes) >= kLargeFrom && !guard_pages_ && !source_;
  int64_t awaited = kind == BlockKind::constant ? 0 : bytes;
  GrowingBlock idle;
  {
    std::lock_guard lock(mutex_);
    if (!admit(bytes))
      throw AllocationFailure(bytes, why_refused(bytes, kind));
    if (grows) {
      idle = take_growing(static_cast<size_t>(bytes));
    } else if (Allocation cached = take_cached(size_class(bytes), kind); cached.address) {
      count(bytes, kind);
      return cached;
    }
    awaited_bytes_ += awaited;
  }
  try {
    Allocation block = fetch(bytes, kind, idle, grows);
    std::lock_guard lock(mutex_);
    awaited_bytes_ -= awaited;
    stats_.system_allocations += idle.ready < static_cast<size_t>(bytes);
    count(bytes, kind);
    return block;
  } catch (...) {
    std::lock_guard lock(mutex_);
    awaited_bytes_ -= awaited;
    throw;
  }
}

/// Memory that is not in the cache, or an arena that was. Throws AllocationFailure.
Allocation Allocator::fetch(int64_t bytes, BlockKind kind, GrowingBlock idle, bool grows) {
  if (idle.ready < static_cast<size_t>(bytes) && !is_available(bytes)) {
    if (idle.address)
      idle.release();
    throw AllocationFailure(bytes, "the system has too little memory left");
  }
  if (grows)
    if (Allocation arena = grow_arena(idle, static_cast<size_t>(bytes)); arena.address)
      return arena;
  if (guard_pages_)
    return allocate_guarded(bytes, kind);
  size_t size = size_class(bytes);
  if (size >= kManyPages && kind != BlockKind::constant && !source_)
    supersede(size);
  void *address = take_fresh(size);
  if (!address && trim() > 0)
    address = take_fresh(size);
  if (!address)
    throw AllocationFailure(bytes, "out of memory");
  return {address, size};
}

/// Keeps the block, for which the cache has room; false when it must be freed.
bool Allocator::keep(Allocation block) noexcept {
  auto size = static_cast<int64_t>(block.size);
  try {
    if (block.grows) {
      auto larger = [size = block.size](const GrowingBlock &other) { return other.ready >= size; };
      idle_arenas_.insert(std::ranges::find_if(idle_arenas_, larger), {static_cast<char *>(block.address), block.size});
      stats_.cached_bytes += size;
      return true;
    }
    FreeList &list = free_[block.size];
    list.addresses.push_back(block.address);
    list.last_use = ++clock_;
  } catch (const std::bad_alloc &) {
    return false;
  }
  stats_.cached_bytes += size;
  return true;
}

void Allocator::release(Allocation block, int64_t bytes, BlockKind kind) noexcept {
  if (block.size == 0)
    return;
  {
    std::lock_guard lock(mutex_);
    uncount(bytes, kind);
    large_.erase(block.address);
  }
  if (guard_pages_)
    return guarded_release(block.address, block.size);
  auto size = static_cast<int64_t>(block.size);
  while (size <= cache_limit_) {
    Allocation idle; // is freed without the lock
    {
      std::lock_guard lock(mutex_);
      if (stats_.cached_bytes + size <= cache_limit_) {
        if (keep(block))
          return;
        break;
      }
      idle = evict();
    }
    give_back(idle);
  }
  give_back(block);
}

int64_t Allocator::trim() noexcept {
  std::map<size_t, FreeList> blocks;
  std::vector<GrowingBlock> arenas;
  {
    std::lock_guard lock(mutex_);
    blocks.swap(free_);
    arenas.swap(idle_arenas_);
    stats_.cached_bytes = 0;
  }
  int64_t bytes = 0;
  for (auto &[size, list] : blocks)
    for (void *address : list.addresses) {
      give_back({address, size});
      bytes += static_cast<int64_t>(size);
    }
  for (GrowingBlock &arena : arenas) {
    bytes += static_cast<int64_t>(arena.ready);
    arena.release();
  }
  return bytes;
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak_bytes = stats_.live_bytes;
}

void Allocator::fail_allocation(int64_t k) {
  std::lock_guard lock(mutex_);
  fail_in_ = k;
}

} // namespace disc
