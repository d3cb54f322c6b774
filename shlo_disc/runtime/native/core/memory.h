// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory for arenas and results: 64-byte aligned, taken from a bounded cache of freed blocks, counted.
#pragma once

#include "forks.h"
#include "growing_block.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace disc {

/// Counters in bytes and events. "live" counts what was asked for, not the rounding of size classes.
struct MemoryStats {
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t cached_bytes = 0;
  int64_t constant_bytes = 0; // held by executables for their constants; not part of live and peak
  int64_t arena_allocations = 0;
  int64_t result_allocations = 0;
  int64_t argument_copies = 0;
  int64_t system_allocations = 0;
  int64_t last_arena_bytes = 0;
};

/// A block of `size` bytes; `size` is 0 for the shared empty block. `grows`: it is a GrowingBlock.
struct Allocation {
  void *address = nullptr;
  size_t size = 0;
  bool grows = false;
};

enum class BlockKind { arena, result, argument, constant };

/// Memory of another kind than the machine's, from which an allocator takes its blocks.
class MemorySource {
public:
  virtual ~MemorySource() = default;

  /// Aligned to 256 bytes; null where there is not enough.
  virtual void *allocate(size_t bytes) = 0;
  virtual void release(void *address, size_t bytes) noexcept = 0;
};

/// Thread-safe. Freed blocks are kept per size class, up to `cache_limit` bytes in all, so that repeated calls do not
/// pay for fresh pages. Large arenas are growing blocks, one for each call at a time: a call that needs more than all
/// before it pays for the difference only.
class Allocator {
public:
  /// `live_limit`: most bytes handed out at a time (0: no limit). `cache_limit`: most bytes kept when free.
  /// `guard_pages`: every block lies between inaccessible pages (guard_pages.h); nothing is kept.
  Allocator(int64_t live_limit, int64_t cache_limit, bool guard_pages = false);

  /// One of blocks of `source`.
  Allocator(int64_t live_limit, int64_t cache_limit, std::shared_ptr<MemorySource> source);
  ~Allocator();
  Allocator(const Allocator &) = delete;
  Allocator &operator=(const Allocator &) = delete;

  /// Throws AllocationFailure. Zero bytes give a valid address that must not be dereferenced.
  Allocation allocate(int64_t bytes, BlockKind kind);

  /// `bytes` is what was asked for when the block was allocated.
  void release(Allocation block, int64_t bytes, BlockKind kind) noexcept;

  /// Returns all cached blocks to the system; the bytes returned.
  int64_t trim() noexcept;

  MemoryStats stats() const;
  void reset_peak();
  bool guard_pages() const { return guard_pages_; }

  /// Test hook: the k-th next allocation (1 = the next one) fails once. 0 switches the hook off.
  void fail_allocation(int64_t k);

private:
  struct FreeList {
    std::vector<void *> addresses;
    uint64_t last_use = 0;
  };

  void *take_fresh(size_t size);
  void give_back(Allocation block) noexcept;
  bool admit(int64_t bytes);
  std::string why_refused(int64_t bytes, BlockKind kind) const;
  bool is_available(int64_t bytes);
  Allocation take(int64_t bytes, BlockKind kind);
  Allocation fetch(int64_t bytes, BlockKind kind, GrowingBlock idle, bool grows);
  Allocation allocate_guarded(int64_t bytes, BlockKind kind);
  GrowingBlock take_growing(size_t bytes);
  Allocation grow_arena(GrowingBlock block, size_t bytes);
  Allocation take_cached(size_t size, BlockKind kind);
  Allocation take_superseded(size_t size);
  void supersede(size_t size) noexcept;
  Allocation evict();
  bool keep(Allocation block) noexcept;
  void count(int64_t bytes, BlockKind kind);
  void uncount(int64_t bytes, BlockKind kind);

  mutable ForkMutex mutex_;
  std::map<size_t, FreeList> free_;
  std::vector<GrowingBlock> idle_arenas_; // by size, growing blocks that no call uses
  std::map<void *, size_t> large_;        // blocks that were handed out, and their bytes
  uint64_t clock_ = 0;
  MemoryStats stats_;
  int64_t awaited_bytes_ = 0; // admitted and not yet there; they count for the limit
  int64_t live_limit_;
  int64_t cache_limit_;
  int64_t fail_in_ = 0;
  bool guard_pages_;
  std::shared_ptr<MemorySource> source_; // null: the machine's memory
};

/// One block and its allocator, released with the last reference.
class Block {
public:
  Block(std::shared_ptr<Allocator> allocator, int64_t bytes, BlockKind kind)
      : allocator_(std::move(allocator)), bytes_(bytes), kind_(kind), block_(allocator_->allocate(bytes, kind)) {}
  ~Block() { allocator_->release(block_, bytes_, kind_); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  void *address() const { return block_.address; }
  int64_t bytes() const { return bytes_; }

private:
  std::shared_ptr<Allocator> allocator_;
  int64_t bytes_;
  BlockKind kind_;
  Allocation block_;
};

} // namespace disc
