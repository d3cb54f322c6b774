// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_clock.h"

namespace disc::cuda {

namespace {

/// Commands whose events are kept at a time: a loop may have any number.
constexpr size_t kMostTimed = 1024;

} // namespace

/// body(), unless something has failed before: around it there is compiled code, through which nothing is thrown.
template <typename Body> void GpuClock::guarded(Body body) noexcept {
  if (failure_)
    return;
  try {
    body();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void GpuClock::begin() {
  guarded([&] { begin_ = std::make_unique<Event>(gpu_, true); });
}

void GpuClock::note(const CommandRun &run) {
  guarded([&] {
    timed_.push_back({run.command, chosen_way, std::move(begin_), std::make_unique<Event>(gpu_, true)});
    if (timed_.size() == kMostTimed)
      add_up();
  });
}

void GpuClock::add_up() {
  if (!timed_.empty())
    timed_.back().end->wait();
  for (const Timed &timed : timed_)
    add(timed.command, timed.end->since(*timed.begin), timed.way);
  timed_.clear();
}

std::vector<CommandTime> GpuClock::times() {
  guarded([&] { add_up(); });
  if (failure_)
    std::rethrow_exception(failure_);
  return CommandClock::times();
}

} // namespace disc::cuda
