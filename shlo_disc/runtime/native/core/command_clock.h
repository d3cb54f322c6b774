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

/// One command that has run: a kernel, by its address or on a GPU by its number, a library call by its index, or else
/// what `kind` names.
struct CommandRun {
  const char *kind = nullptr;
  DiscKernel kernel = nullptr;
  int64_t gpu_kernel = -1;
  int64_t call = -1;
  int64_t command = 0;
  std::chrono::system_clock::time_point start{};
  std::chrono::nanoseconds taken{};
};

/// The functions of a runtime, processors' and GPUs', each of which tells when it has run. A command that is not called
/// through the runtime is not seen.
class ObservedRuntime {
public:
  explicit ObservedRuntime(const DiscRuntime &runtime);
  ObservedRuntime(const ObservedRuntime &) = delete;
  ObservedRuntime &operator=(const ObservedRuntime &) = delete;

  const DiscRuntime &runtime() const { return observed_; }

protected:
  ~ObservedRuntime() = default;

private:
  /// Before a command is given to the runtime, and after that.
  virtual void begin() {}
  virtual void note(const CommandRun &run) = 0;

  template <auto Function, typename... Arguments>
  static void observed(const DiscRuntime *runtime, Arguments... arguments, int64_t command);

  /// Not a command: the host reads what it decides by.
  static void read(const DiscRuntime *runtime, const void *from, int64_t bytes, void *to, int64_t command);

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
class CommandClock : public ObservedRuntime {
public:
  using ObservedRuntime::ObservedRuntime;
  virtual ~CommandClock() = default;

  /// Those of the commands so far. Throws Error(device) where they could not be taken.
  virtual std::vector<CommandTime> times() { return times_; }

protected:
  void add(int64_t command, std::chrono::nanoseconds taken, const char *way);

private:
  void note(const CommandRun &run) override { add(run.command, run.taken, chosen_way); }

  std::vector<CommandTime> times_;
};

} // namespace disc
