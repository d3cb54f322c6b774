// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "interruptible_run.h"

#include <x86intrin.h>

namespace disc {

namespace {

constexpr uint64_t kInterval = uint64_t{1} << 28; // some 100 ms: to ask Python means to wait for its lock

} // namespace

template <auto Function, typename... Arguments>
void InterruptibleRun::asking(const DiscRuntime *runtime, Arguments... arguments) {
  InterruptibleRun &self = of(runtime);
  self.ask();
  (self.run_.runtime->*Function)(self.run_.runtime, arguments...);
}

constinit const DiscRuntime InterruptibleRun::kAsking = {
    .launch = asking<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t, int64_t>,
    .dot = asking<&DiscRuntime::dot, const DiscDot *, int64_t>,
    .opaque = nullptr,
    .call = asking<&DiscRuntime::call, int64_t, const int64_t *, int64_t>,
    .convolution = asking<&DiscRuntime::convolution, const DiscConvolution *, int64_t>,
    .attention = asking<&DiscRuntime::attention, const DiscAttention *, int64_t>,
    .enqueue = nullptr,
    .copy = nullptr,
    .clear = nullptr,
    .read = nullptr,
    .product = nullptr,
    .trip = trip,
};

InterruptibleRun::InterruptibleRun(const SegmentRun &run, IsInterrupted is_interrupted)
    : run_(run), is_interrupted_(is_interrupted), runtime_(kAsking) {
  runtime_.opaque = this;
}

void InterruptibleRun::ask() {
  uint64_t now = __rdtsc();
  if (now < next_) [[likely]]
    return;
  if (next_ != 0 && is_interrupted_())
    std::longjmp(start_, 1);
  next_ = now + kInterval;
}

void InterruptibleRun::enter(const DiscRuntime *runtime, void *const *buffers, const int64_t *words, void *arena) {
  InterruptibleRun &self = of(runtime);
  if (_setjmp(self.start_) == 0)
    self.run_.function(runtime, buffers, words, arena);
  else
    self.was_interrupted_ = true;
}

void InterruptibleRun::run(const Commands &commands) {
  commands.run({enter, &runtime_, run_.buffers, run_.words, run_.arena});
  if (was_interrupted_)
    throw Interrupted();
}

} // namespace disc
