// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each command of a program does and how long it takes.
#pragma once

#include "abi.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace disc {

/// The way that this thread's last command went; the runtime's functions note it where they choose.
inline thread_local const char *chosen_way = nullptr;

/// One command that has run: a kernel, a library call by its index, or else what `kind` names.
struct CommandRun {
  const char *kind = nullptr;
  DiscKernel kernel = nullptr;
  int64_t call = -1;
  int64_t command = 0;
  std::chrono::system_clock::time_point start{};
  std::chrono::nanoseconds taken{};
};

/// The functions of a runtime, each of which tells when it has run. A command that is not called through the runtime is
/// not seen.
class ObservedRuntime {
public:
  explicit ObservedRuntime(const DiscRuntime &runtime);
  ObservedRuntime(const ObservedRuntime &) = delete;
  ObservedRuntime &operator=(const ObservedRuntime &) = delete;

  const DiscRuntime &runtime() const { return observed_; }

protected:
  ~ObservedRuntime() = default;

private:
  virtual void note(const CommandRun &run) = 0;

  template <auto Function, typename... Arguments>
  static void observed(const DiscRuntime *runtime, Arguments... arguments, int64_t command);

  DiscRuntime plain_;
  DiscRuntime observed_;
};

/// One command over a call: how often it ran, for how long, and the way that the runtime chose for it, or null.
struct CommandTime {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
  const char *way = nullptr;
};

/// Adds up the times of each command.
class CommandClock final : public ObservedRuntime {
public:
  using ObservedRuntime::ObservedRuntime;

  const std::vector<CommandTime> &times() const { return times_; }

private:
  void note(const CommandRun &run) override;

  std::vector<CommandTime> times_;
};

} // namespace disc
