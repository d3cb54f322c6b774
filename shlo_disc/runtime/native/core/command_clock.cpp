// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command_clock.h"

namespace disc {

namespace {

CommandRun described(DiscKernel kernel, const int64_t *, int64_t, int64_t) { return {.kernel = kernel}; }
CommandRun described(const DiscDot *) { return {.kind = "product"}; }
CommandRun described(int64_t index, const int64_t *) { return {.call = index}; }
CommandRun described(const DiscConvolution *) { return {.kind = "convolution"}; }
CommandRun described(const DiscAttention *) { return {.kind = "attention"}; }
CommandRun described(const DiscAttentionGradient *) { return {.kind = "attention_gradient"}; }
CommandRun described(int64_t kernel, const int64_t *, int64_t, int64_t) { return {.gpu_kernel = kernel}; }
CommandRun described(const DiscProduct *) { return {.kind = "product"}; }
CommandRun described(void *, const void *, int64_t) { return {.kind = "copy"}; }
CommandRun described(void *, int64_t) { return {.kind = "clear"}; }

} // namespace

void ObservedRuntime::read(const DiscRuntime *runtime, const void *from, int64_t bytes, void *to, int64_t command) {
  const DiscRuntime &plain = static_cast<ObservedRuntime *>(runtime->opaque)->plain_;
  plain.read(&plain, from, bytes, to, command);
}

template <auto Function, typename... Arguments>
void ObservedRuntime::observed(const DiscRuntime *runtime, Arguments... arguments, int64_t command) {
  auto &self = *static_cast<ObservedRuntime *>(runtime->opaque);
  CommandRun run = described(arguments...);
  run.command = command;
  run.start = std::chrono::system_clock::now();
  chosen_way = nullptr;
  self.begin();
  auto start = std::chrono::steady_clock::now();
  (self.plain_.*Function)(&self.plain_, arguments..., command);
  run.taken = std::chrono::steady_clock::now() - start;
  self.note(run);
}

ObservedRuntime::ObservedRuntime(const DiscRuntime &runtime) : plain_(runtime), observed_{} {
  observed_.launch = observed<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t>;
  observed_.dot = observed<&DiscRuntime::dot, const DiscDot *>;
  observed_.opaque = this;
  observed_.call = observed<&DiscRuntime::call, int64_t, const int64_t *>;
  observed_.convolution = observed<&DiscRuntime::convolution, const DiscConvolution *>;
  observed_.attention = observed<&DiscRuntime::attention, const DiscAttention *>;
  observed_.attention_gradient = observed<&DiscRuntime::attention_gradient, const DiscAttentionGradient *>;
  observed_.enqueue = observed<&DiscRuntime::enqueue, int64_t, const int64_t *, int64_t, int64_t>;
  observed_.product = observed<&DiscRuntime::product, const DiscProduct *>;
  observed_.copy = observed<&DiscRuntime::copy, void *, const void *, int64_t>;
  observed_.clear = observed<&DiscRuntime::clear, void *, int64_t>;
  observed_.read = read;
}

void CommandClock::add(int64_t number, std::chrono::nanoseconds taken, const char *way) {
  auto command = static_cast<size_t>(number);
  if (times_.size() <= command)
    times_.resize(command + 1);
  CommandTime &time = times_[command];
  ++time.calls;
  time.nanoseconds += taken.count();
  time.way = way;
}

} // namespace disc
