// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "interruptible_run.h"

#include <utility>
#include <x86intrin.h>

namespace disc {

namespace {

constexpr uint64_t kInterval = uint64_t{1} << 28; // some 100 ms: to ask Python means to wait for its lock

/// Has a thread ask while it waits for others, and is undone.
class AskingWhileWaiting {
public:
  explicit AskingWhileWaiting(WaitObserver *observer) : before_(std::exchange(observer_of_waits, observer)) {}
  ~AskingWhileWaiting() { observer_of_waits = before_; }
  AskingWhileWaiting(const AskingWhileWaiting &) = delete;
  AskingWhileWaiting &operator=(const AskingWhileWaiting &) = delete;

private:
  WaitObserver *before_;
};

} // namespace

template <auto Function, typename... Arguments>
void InterruptibleRun::asking(const DiscRuntime *runtime, Arguments... arguments) {
  InterruptibleRun &self = of(runtime);
  self.ask();
  (self.run_.runtime->*Function)(self.run_.runtime, arguments...);
  if (self.has_ended_.load(std::memory_order_relaxed)) [[unlikely]]
    std::longjmp(self.start_, 1);
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
    .has_ended = has_ended,
    .attention_gradient = asking<&DiscRuntime::attention_gradient, const DiscAttentionGradient *, int64_t>,
};

InterruptibleRun::InterruptibleRun(const SegmentRun &run, IsInterrupted is_interrupted)
    : run_(run), is_interrupted_(is_interrupted), runtime_(kAsking) {
  runtime_.opaque = this;
}

/// Called by the thread that began the run.
bool InterruptibleRun::is_to_end() noexcept {
  if (has_ended_.load(std::memory_order_relaxed))
    return true;
  uint64_t now = __rdtsc();
  if (now < next_) [[likely]]
    return false;
  if (next_ != 0 && is_interrupted_())
    has_ended_.store(true, std::memory_order_relaxed);
  next_ = now + kInterval;
  return has_ended_.load(std::memory_order_relaxed);
}

void InterruptibleRun::ask() {
  if (is_to_end())
    std::longjmp(start_, 1);
}

int64_t InterruptibleRun::has_ended(const DiscRuntime *runtime) {
  InterruptibleRun &self = of(runtime);
  if (pthread_equal(pthread_self(), self.thread_))
    return self.is_to_end();
  return self.has_ended_.load(std::memory_order_relaxed);
}

void InterruptibleRun::enter(const DiscRuntime *runtime, void *const *buffers, const int64_t *words, void *arena) {
  InterruptibleRun &self = of(runtime);
  if (_setjmp(self.start_) == 0)
    self.run_.function(runtime, buffers, words, arena);
}

void InterruptibleRun::run(const Commands &commands) {
  AskingWhileWaiting asking(this);
  commands.run({enter, &runtime_, run_.buffers, run_.words, run_.arena});
  if (has_ended_.load(std::memory_order_relaxed))
    throw Interrupted();
}

} // namespace disc
