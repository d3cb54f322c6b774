// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_recorder.h"

#include <unistd.h>

namespace disc {

namespace {

RecordedSpan span_of(std::chrono::system_clock::time_point start, std::chrono::nanoseconds taken) {
  auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(start.time_since_epoch());
  return {.thread = gettid(), .start = since.count(), .nanoseconds = taken.count()};
}

} // namespace

/// All ranges of a command are there when it ends.
void RunRecorder::note(const CommandRun &run) {
  commands_.push_back(span_of(run.start, run.taken));
  commands_.back().command = run.command;
  std::lock_guard lock(mutex_);
  for (; known_ < ranges_.size(); ++known_)
    ranges_[known_].command = run.command;
}

void RunRecorder::worked(std::chrono::system_clock::time_point start, std::chrono::nanoseconds taken) {
  std::lock_guard lock(mutex_);
  ranges_.push_back(span_of(start, taken));
}

} // namespace disc
