// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How long the commands of a call take on a GPU.
#pragma once

#include "core/command_clock.h"
#include "gpu.h"

#include <exception>
#include <memory>
#include <vector>

namespace disc::cuda {

/// Puts an event before and behind each command in the GPU's stream. What lies between two events holds the GPU's own
/// gap before a kernel as well, about a microsecond.
class GpuClock final : public CommandClock {
public:
  GpuClock(std::shared_ptr<const Gpu> gpu, const DiscRuntime &runtime) : CommandClock(runtime), gpu_(std::move(gpu)) {}

  /// Waits for the commands.
  std::vector<CommandTime> times() override;

private:
  struct Timed {
    int64_t command;
    const char *way;
    std::unique_ptr<Event> begin, end;
  };

  void begin() override;
  void note(const CommandRun &run) override;
  void add_up();
  template <typename Body> void guarded(Body body) noexcept;

  std::shared_ptr<const Gpu> gpu_;
  std::unique_ptr<Event> begin_;
  std::vector<Timed> timed_; // and not yet added up
  std::exception_ptr failure_;
};

} // namespace disc::cuda
