// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each step of a program does and how long it takes, for one call.
#pragma once

#include "abi.h"

#include <cstdint>
#include <vector>

namespace disc {

/// One step over a call: how often it ran, for how long, and the way that the runtime chose for it, or null.
struct StepTime {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
  const char *way = nullptr;
};

/// The way that this thread's last step went; the runtime's functions note it where they choose.
inline thread_local const char *chosen_way = nullptr;

/// The functions of a runtime, each of which is timed. A step that is not called through the runtime is not seen.
class StepClock {
public:
  explicit StepClock(const DiscRuntime &runtime);

  const DiscRuntime &runtime() const { return timed_; }
  const std::vector<StepTime> &times() const { return times_; }

private:
  template <auto Function, typename... Arguments>
  static void timed(const DiscRuntime *runtime, Arguments... arguments, int64_t step);

  DiscRuntime plain_;
  DiscRuntime timed_;
  std::vector<StepTime> times_;
};

} // namespace disc
