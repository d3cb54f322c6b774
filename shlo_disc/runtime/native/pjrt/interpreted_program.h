// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small programs are interpreted until they are hot: most of those that a framework makes run a few times only.
#pragma once

#include "program/executable.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

namespace disc::pjrt {

/// The work that programs of one skeleton have done by interpretation, in nanoseconds. They are hot after a tenth to a
/// fifth of the time of a compile: what has run so often is likely to run on, and compiled programs are up to ten times as
/// fast.
class Hotness {
public:
  void add(int64_t work) { work_.fetch_add(work, std::memory_order_relaxed); }
  void set_hot() { work_.store(kMost, std::memory_order_relaxed); }
  /// ops: of the program.
  bool is_hot(size_t ops) const {
    return work_.load(std::memory_order_relaxed) >= kHot + static_cast<int64_t>(ops) * kHotOp;
  }

private:
  static constexpr int64_t kHot = 4'000'000, kHotOp = 100'000, kMost = INT64_MAX / 2;

  std::atomic<int64_t> work_ = 0;
};

/// What an interpreted program is, beside its executable.
struct Interpreted {
  std::shared_ptr<const Executable> executable;
  std::shared_ptr<Hotness> hotness;
  size_t ops = 0;
  bool may_stop = false; // a run may end with interpreter::Unsupported: the program is to be compiled and run again

  bool is_hot() const { return hotness->is_hot(ops); }
};

/// A program for one processor, where a run of it is at most so long, as far as can be told; else nothing.
std::optional<Interpreted> interpreted(std::string_view program, std::shared_ptr<Hotness> hotness, int64_t most_nanoseconds);

} // namespace disc::pjrt
