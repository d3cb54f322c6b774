// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "available_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace disc {

namespace {

constexpr size_t kSamples = 64; // pages of a block that are looked at
constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max() / 2;

/// The number in a file that has nothing else; nothing for "max" and for a file that is not there.
std::optional<int64_t> number_in(const std::filesystem::path &path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The number behind a name in a file of names and numbers.
std::optional<int64_t> number_of(const std::string &name, const std::filesystem::path &path) {
  std::ifstream file(path);
  std::string word;
  for (int64_t number = 0; file >> word; file.ignore(kUnknown, '\n'))
    if (word == name && file >> number)
      return number;
  return std::nullopt;
}

/// What a control group leaves: its limit without what its processes hold. Cached files can be dropped.
int64_t left_in_group(const std::filesystem::path &group, const char *limit, const char *usage, const char *cached) {
  std::optional<int64_t> most = number_in(group / limit), used = number_in(group / usage);
  if (!most || !used)
    return kUnknown;
  int64_t files = number_of(cached, group / "memory.stat").value_or(0);
  return std::max<int64_t>(*most - *used + files, 0);
}

/// The least that the group of this process and those around it leave.
int64_t left_in_groups() {
  std::ifstream file("/proc/self/cgroup"); // lines such as 4:memory:/path, or 0::/path
  int64_t least = kUnknown;
  for (std::string line; std::getline(file, line);) {
    bool is_unified = line.starts_with("0::");
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || (!is_unified && line.substr(first, second - first + 1) != ":memory:"))
      continue;
    std::filesystem::path root = is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (bool is_root = false; !is_root; group = group.parent_path()) {
      is_root = group.empty();
      least = std::min(least, is_unified ? left_in_group(root / group, "memory.max", "memory.current", "file")
                                         : left_in_group(root / group, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                                         "total_cache"));
    }
  }
  return least;
}

} // namespace

int64_t available_memory() noexcept {
  try {
    std::optional<int64_t> available = number_of("MemAvailable:", "/proc/meminfo");
    int64_t kilobytes = available.value_or(kUnknown / 1024);
    return std::min(kilobytes * 1024, left_in_groups());
  } catch (const std::exception &) {
    return kUnknown;
  }
}

int64_t unwritten_bytes(const void *address, size_t size) noexcept {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  size_t unwritten = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    uintptr_t place = (reinterpret_cast<uintptr_t>(address) + size / kSamples * i) / page * page;
    unsigned char state = 0;
    unwritten += mincore(reinterpret_cast<void *>(place), page, &state) == 0 && (state & 1) == 0;
  }
  return static_cast<int64_t>(size / kSamples * unwritten);
}

} // namespace disc
