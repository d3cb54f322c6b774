// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "write_watch.h"

#include "forks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace disc {

namespace {

// The part of linux/userfaultfd.h and linux/fs.h that is used here: the headers of a build machine may be older.

struct Api {
  uint64_t api = 0xAA, features = 0, ioctls = 0;
};
struct Range {
  uint64_t start, length;
};
struct Registration {
  Range range;
  uint64_t mode, ioctls = 0;
};
struct Protection {
  Range range;
  uint64_t mode;
};
struct Region {
  uint64_t start, end, categories;
};
struct Scan {
  uint64_t size = sizeof(Scan), flags, start, end, walk_end = 0;
  Region *regions;
  uint64_t region_count, most_pages, inverted, all_of, any_of, returned;
};
static_assert(sizeof(Api) == 24 && sizeof(Registration) == 32 && sizeof(Protection) == 24 && sizeof(Scan) == 96);

constexpr unsigned long kApi = _IOWR(0xAA, 0x3F, Api), kRegister = _IOWR(0xAA, 0x00, Registration),
                        kUnregister = _IOR(0xAA, 0x01, Range), kProtect = _IOWR(0xAA, 0x06, Protection),
                        kScan = _IOWR('f', 16, Scan);
constexpr int kUserModeOnly = 1;                                                    // no privilege is needed
constexpr uint64_t kFeatures = uint64_t{1} << 0 | uint64_t{1} << 13 | uint64_t{1} << 15; // WP, unpopulated, async
constexpr uint64_t kRegisterForWrites = 2, kWriteProtect = 1, kFailUnlessAsync = 2;
constexpr uint64_t kWatched = 1, kWritten = 2, kOfFile = 4, kPresent = 8, kSwapped = 16; // categories of pages

uintptr_t page_size() {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

/// Each may cut a mapping of memory in three, and Linux gives a process some 65,000 mappings (vm.max_map_count).
constexpr size_t kMostWatches = 8192;

bool is_wanted() {
  const char *said = std::getenv("SHLO_DISC_WATCH_WRITES");
  return said == nullptr || std::strcmp(said, "0") != 0;
}

} // namespace

/// All memory of the process that is watched; no two watches share a page.
class WatchedMemory {
public:
  /// Never destroyed: threads outlive statics.
  static WatchedMemory &instance() {
    static auto *all = new WatchedMemory;
    return *all;
  }

  std::shared_ptr<WriteWatch> watch(const char *data, int64_t bytes) {
    auto address = reinterpret_cast<uintptr_t>(data);
    uintptr_t begin = (address + page_size() - 1) / page_size() * page_size();
    uintptr_t end = (address + static_cast<uintptr_t>(bytes)) / page_size() * page_size();
    if (end < begin + WriteWatch::kLeastPages * page_size())
      return nullptr;
    std::shared_ptr<WriteWatch> made; // ends after the lock, which its destructor takes
    std::lock_guard lock(mutex_);
    if (!open() || watches_.size() >= kMostWatches)
      return nullptr;
    if (auto same = watches_.find(begin); same != watches_.end() && same->second.watch->is_of(data, bytes))
      if (made = same->second.share.lock(); made && made->is_unwritten())
        return made;
    give_way(begin, end);
    if (!protect(begin, end))
      return nullptr;
    made.reset(new WriteWatch(data, bytes, begin, end, generation_));
    watches_[begin] = {end, made.get(), made};
    for (uintptr_t page = begin; page < end; page += page_size()) // so that the scan sees whose page each is
      read(page);
    if (all_unwritten(begin, end))
      return made;
    stop(watches_.find(begin));
    return nullptr;
  }

  /// Ends a watch, unless others have the pages now.
  void end(const WriteWatch &watch) {
    std::lock_guard lock(mutex_);
    if (watch.generation_ != generation_)
      return;
    auto found = watches_.find(watch.begin_);
    if (found != watches_.end() && found->second.watch == &watch)
      stop(found);
  }

  /// Whether no page has been written since it was protected. For the one question which pages were written, Linux walks
  /// a table of pages in a fiftieth of the time of any other. It may pass by tables that are missing, whose memory was
  /// released (MADV_DONTNEED): one byte of each is read before, which makes them, with a page that is not protected.
  bool is_unwritten(uintptr_t begin, uintptr_t end) const {
    const uintptr_t table = page_size() / sizeof(uint64_t) * page_size(); // bytes whose pages one table has
    for (uintptr_t page = begin; page < end; page = page / table * table + table)
      read(page);
    Region found{};
    Scan scan{.flags = kFailUnlessAsync, .start = begin, .end = end, .regions = &found, .region_count = 1,
              .most_pages = 1, .inverted = 0, .all_of = kWritten, .any_of = 0, .returned = kWritten};
    return ioctl(pages_, kScan, &scan) == 0;
  }

private:
  struct Entry {
    uintptr_t end;
    WriteWatch *watch;
    std::weak_ptr<WriteWatch> share;
  };
  using Entries = std::map<uintptr_t, Entry>; // by the first page

  WatchedMemory() = default;

  static void read(uintptr_t address) { static_cast<void>(*reinterpret_cast<const volatile char *>(address)); }

  /// Opens what the kernel is asked through, anew in the child of a fork: there the descriptors are of the parent's memory.
  bool open() {
    if (generation_ == fork_count() && (pages_ >= 0 || failed_))
      return !failed_;
    for (int descriptor : {faults_, pages_})
      if (descriptor >= 0)
        close(descriptor);
    watches_.clear();
    generation_ = fork_count();
    faults_ = static_cast<int>(syscall(SYS_userfaultfd, kUserModeOnly | O_CLOEXEC));
    pages_ = faults_ < 0 ? -1 : ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    Api api{.features = kFeatures};
    failed_ = pages_ < 0 || ioctl(faults_, kApi, &api) != 0;
    return !failed_;
  }

  /// Ends the watches that share a page with these: they can no longer tell.
  void give_way(uintptr_t begin, uintptr_t end) {
    auto entry = watches_.lower_bound(begin);
    if (entry != watches_.begin() && std::prev(entry)->second.end > begin)
      --entry;
    while (entry != watches_.end() && entry->first < end) {
      entry->second.watch->is_written_ = true; // it lives: its destructor waits for the lock
      entry = stop(entry);
    }
  }

  bool protect(uintptr_t begin, uintptr_t end) const {
    Range range{begin, end - begin};
    Registration registration{range, kRegisterForWrites};
    if (ioctl(faults_, kRegister, &registration) != 0)
      return false;
    Protection protection{range, kWriteProtect};
    if (ioctl(faults_, kProtect, &protection) == 0)
      return true;
    ioctl(faults_, kUnregister, &range);
    return false;
  }

  Entries::iterator stop(Entries::iterator entry) {
    Range range{entry->first, entry->second.end - entry->first};
    ioctl(faults_, kUnregister, &range); // fails where the memory is another's by now, which is as good
    return watches_.erase(entry);
  }

  /// Whether each of the pages is here or swapped out, of this process alone, and as it was protected.
  bool all_unwritten(uintptr_t begin, uintptr_t end) const {
    Region found[2] = {};
    Scan scan{.flags = kFailUnlessAsync, .start = begin, .end = end, .regions = found, .region_count = 2,
              .most_pages = 0, .inverted = kWritten | kOfFile, .all_of = kWatched | kWritten | kOfFile,
              .any_of = kPresent | kSwapped, .returned = kWatched};
    return ioctl(pages_, kScan, &scan) == 1 && found[0].start == begin && found[0].end == end;
  }

  ForkMutex mutex_;
  int faults_ = -1, pages_ = -1;
  bool failed_ = false;
  int generation_ = fork_count();
  Entries watches_;
};

WriteWatch::WriteWatch(const char *data, int64_t bytes, uintptr_t begin, uintptr_t end, int generation)
    : begin_(begin), end_(end), generation_(generation) {
  const char *first = reinterpret_cast<const char *>(begin), *last = reinterpret_cast<const char *>(end);
  edges_[0] = {data, {data, first}};
  edges_[1] = {last, {last, data + bytes}};
}

std::shared_ptr<WriteWatch> WriteWatch::of(const void *data, int64_t bytes) {
  return is_wanted() ? WatchedMemory::instance().watch(static_cast<const char *>(data), bytes) : nullptr;
}

WriteWatch::~WriteWatch() { WatchedMemory::instance().end(*this); }

bool WriteWatch::is_of(const char *data, int64_t bytes) const {
  const Edge &last = edges_[1];
  return data == edges_[0].data && data + bytes == last.data + last.bytes.size();
}

bool WriteWatch::is_unwritten() {
  if (is_written_)
    return false;
  bool same = generation_ == fork_count() && WatchedMemory::instance().is_unwritten(begin_, end_) &&
              std::ranges::all_of(edges_, [](const Edge &edge) {
                return std::equal(edge.bytes.begin(), edge.bytes.end(), edge.data);
              });
  if (!same)
    is_written_ = true;
  return same;
}

} // namespace disc
