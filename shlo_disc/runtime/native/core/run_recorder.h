// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When the commands of one call ran, and which threads worked on them.
#pragma once

#include "command_clock.h"
#include "thread_pool.h"

#include <mutex>
#include <vector>

namespace disc {

/// A command, or a range of its work. Times are nanoseconds, of the system's clock.
struct RecordedSpan {
  int64_t command = 0;
  int64_t thread = 0; // the system's number
  int64_t start = 0;
  int64_t nanoseconds = 0;
};

/// Records the run of the thread that makes it, on processors.
class RunRecorder final : public ObservedRuntime, private RangeObserver {
public:
  explicit RunRecorder(const DiscRuntime &runtime) : ObservedRuntime(runtime), outer_(observer_of_loops) {
    observer_of_loops = this;
  }
  ~RunRecorder() { observer_of_loops = outer_; }

  /// Those of the caller's thread, in the order in which they ended.
  const std::vector<RecordedSpan> &commands() const { return commands_; }

  /// Ranges of commands whose work was divided, in the order in which they ended.
  const std::vector<RecordedSpan> &ranges() const { return ranges_; }

private:
  void note(const CommandRun &run) override;
  void worked(std::chrono::system_clock::time_point start, std::chrono::nanoseconds taken) override;

  RangeObserver *outer_;
  std::vector<RecordedSpan> commands_;
  std::mutex mutex_;
  std::vector<RecordedSpan> ranges_;
  size_t known_ = 0; // of how many ranges the command is known
};

} // namespace disc
