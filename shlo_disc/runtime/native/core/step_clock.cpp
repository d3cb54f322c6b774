// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "step_clock.h"

namespace disc {

namespace {

StepRun described(DiscKernel kernel, const int64_t *, int64_t, int64_t) { return {.kernel = kernel}; }
StepRun described(const DiscDot *) { return {.kind = "product"}; }
StepRun described(int64_t index, const int64_t *) { return {.call = index}; }
StepRun described(const DiscConvolution *) { return {.kind = "convolution"}; }
StepRun described(const DiscAttention *) { return {.kind = "attention"}; }

} // namespace

template <auto Function, typename... Arguments>
void ObservedRuntime::observed(const DiscRuntime *runtime, Arguments... arguments, int64_t step) {
  auto &self = *static_cast<ObservedRuntime *>(runtime->opaque);
  StepRun run = described(arguments...);
  run.step = step;
  run.start = std::chrono::system_clock::now();
  chosen_way = nullptr;
  auto start = std::chrono::steady_clock::now();
  (self.plain_.*Function)(&self.plain_, arguments..., step);
  run.taken = std::chrono::steady_clock::now() - start;
  self.note(run);
}

ObservedRuntime::ObservedRuntime(const DiscRuntime &runtime)
    : plain_(runtime), observed_{observed<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t>,
                                 observed<&DiscRuntime::dot, const DiscDot *>,
                                 this,
                                 observed<&DiscRuntime::call, int64_t, const int64_t *>,
                                 observed<&DiscRuntime::convolution, const DiscConvolution *>,
                                 observed<&DiscRuntime::attention, const DiscAttention *>} {}

void StepClock::note(const StepRun &run) {
  auto step = static_cast<size_t>(run.step);
  if (times_.size() <= step)
    times_.resize(step + 1);
  StepTime &time = times_[step];
  ++time.calls;
  time.nanoseconds += run.taken.count();
  time.way = chosen_way;
}

} // namespace disc
