// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command_clock.h"

namespace disc {

namespace {

CommandRun described(DiscKernel kernel, const int64_t *, int64_t, int64_t) { return {.kernel = kernel}; }
CommandRun described(const DiscDot *) { return {.kind = "product"}; }
CommandRun described(int64_t index, const int64_t *) { return {.call = index}; }
CommandRun described(const DiscConvolution *) { return {.kind = "convolution"}; }
CommandRun described(const DiscAttention *) { return {.kind = "attention"}; }

} // namespace

template <auto Function, typename... Arguments>
void ObservedRuntime::observed(const DiscRuntime *runtime, Arguments... arguments, int64_t command) {
  auto &self = *static_cast<ObservedRuntime *>(runtime->opaque);
  CommandRun run = described(arguments...);
  run.command = command;
  run.start = std::chrono::system_clock::now();
  chosen_way = nullptr;
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
}

void CommandClock::note(const CommandRun &run) {
  auto command = static_cast<size_t>(run.command);
  if (times_.size() <= command)
    times_.resize(command + 1);
  CommandTime &time = times_[command];
  ++time.calls;
  time.nanoseconds += run.taken.count();
  time.way = chosen_way;
}

} // namespace disc
