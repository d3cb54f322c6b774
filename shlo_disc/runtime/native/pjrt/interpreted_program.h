// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small programs are interpreted until they have done as much work as a compile is: most of those that a framework makes
// run a few times only.
#pragma once

#include "program/executable.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

namespace disc::pjrt {

/// The work that programs of one skeleton have done by interpretation, in nanoseconds, and how much of it is as long as a
/// compile.
class Warmth {
public:
  void add(int64_t work) { work_.fetch_add(work, std::memory_order_relaxed); }
  /// From now on there is enough of it.
  void fill() { work_.store(kMost, std::memory_order_relaxed); }
  /// ops: of the program.
  bool is_enough(size_t ops) const {
    return work_.load(std::memory_order_relaxed) >= kCompile + static_cast<int64_t>(ops) * kCompileOp;
  }

private:
  static constexpr int64_t kCompile = 4'000'000, kCompileOp = 100'000, kMost = INT64_MAX / 2;

  std::atomic<int64_t> work_ = 0;
};

/// What an interpreted program is, beside its executable.
struct Interpreted {
  std::shared_ptr<const Executable> executable;
  std::shared_ptr<Warmth> warmth;
  size_t ops = 0;
  bool may_stop = false; // a run may end with interpreter::Unsupported: the program is to be compiled and run again

  bool is_warm() const { return warmth->is_enough(ops); }
};

/// A program for one processor, where a run of it is at most so long, as far as can be told; else nothing.
std::optional<Interpreted> interpreted(std::string_view program, std::shared_ptr<Warmth> warmth, int64_t most_nanoseconds);

} // namespace disc::pjrt
