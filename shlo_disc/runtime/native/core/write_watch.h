// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether anybody has written some memory since a time, without reading it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace disc {

/// Some memory, from now on watched for writes of any kind: by code of this process, and by the kernel on behalf of
/// this or another one (read(2) into it, process_vm_writev). The pages that lie wholly in it are write-protected
/// asynchronously (UFFD_FEATURE_WP_ASYNC, Linux 6.7): the kernel resolves the first write to a page itself, and
/// PAGEMAP_SCAN finds the pages that were written, at some 1 ns a page. Of the first and last page the bytes that
/// belong to the memory are kept and compared. Not noticed is what a device writes into pages that a driver pinned
/// before. Thread-safe.
class WriteWatch {
public:
  static constexpr int64_t kLeastPages = 4; // less is read as fast

  /// Null where nothing tells: with an older kernel, in sandboxes without userfaultfd, under SHLO_DISC_WATCH_WRITES=0;
  /// for memory of few pages, of files, or shared with other processes, where somebody else watches it already, and behind
  /// some thousands of watches.
  static std::shared_ptr<WriteWatch> of(const void *data, int64_t bytes);

  ~WriteWatch();
  WriteWatch(const WriteWatch &) = delete;
  WriteWatch &operator=(const WriteWatch &) = delete;

  /// Whether nobody has written the memory since `of` began. Once false, always false; false in the child of a fork.
  /// The memory still belongs to who it belonged to.
  bool is_unwritten();

private:
  friend class WatchedMemory;

  /// The bytes at one end of the memory, which share a page with others.
  struct Edge {
    const char *data;
    std::vector<char> bytes;
  };

  bool is_of(const char *data, int64_t bytes) const;

  WriteWatch(const char *data, int64_t bytes, uintptr_t begin, uintptr_t end, int generation);

  const uintptr_t begin_, end_; // of the pages
  const int generation_;        // of the process: its forks
  Edge edges_[2];
  std::atomic<bool> is_written_{false};
};

} // namespace disc
