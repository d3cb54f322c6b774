// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "step_clock.h"

#include <chrono>

namespace disc {

template <auto Function, typename... Arguments>
void StepClock::timed(const DiscRuntime *runtime, Arguments... arguments, int64_t step) {
  auto &clock = *static_cast<StepClock *>(runtime->opaque);
  if (clock.times_.size() <= static_cast<size_t>(step))
    clock.times_.resize(static_cast<size_t>(step) + 1);
  chosen_way = nullptr;
  auto start = std::chrono::steady_clock::now();
  (clock.plain_.*Function)(&clock.plain_, arguments..., step);
  auto taken = std::chrono::steady_clock::now() - start;
  StepTime &time = clock.times_[static_cast<size_t>(step)];
  ++time.calls;
  time.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
  time.way = chosen_way;
}

StepClock::StepClock(const DiscRuntime &runtime)
    : plain_(runtime), timed_{timed<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t>,
                              timed<&DiscRuntime::dot, const DiscDot *>,
                              this,
                              timed<&DiscRuntime::call, int64_t, const int64_t *>,
                              timed<&DiscRuntime::convolution, const DiscConvolution *>,
                              timed<&DiscRuntime::attention, const DiscAttention *>} {}

} // namespace disc
