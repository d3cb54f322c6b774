// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One device's part in a call: what it reads, and the plan for its sizes.
#pragma once

#include "executable.h"

namespace disc::pjrt {

/// Keeps what a run reads, but for the program, and may run after its caller has deleted all of it.
class DeviceCall {
public:
  /// Reads what the caller gives. On processors, arguments need not be there yet; others are waited for. Throws Failure
  /// and Error where the program does not take them, or when they will never be there.
  DeviceCall(const Code &code, PJRT_Device &device, std::span<PJRT_Buffer *const> buffers);

  /// Whether an argument is not there yet, or never will be.
  bool awaits() const { return !awaited_.empty(); }

  /// Whether an argument is memory that somebody else may write once the caller goes on.
  bool reads_foreign_memory() const { return reads_foreign_memory_; }

  const DiscRuntime &runtime() const { return here_.compiled.executable->runtime(); }

  /// Waits for the arguments. Throws the failure of what makes them.
  void wait() const;

  /// Runs the program once the arguments are there. `runtime`: the executable's, or a participant's.
  void run(const DiscRuntime &runtime);

  /// Of the run.
  Results results;

  /// The results' sizes, as frameworks see them: known before the run of a program that reads no sizes from data.
  std::vector<std::vector<int64_t>> result_dims() const;

  /// A result of the run, for the caller. `done`: where it is not null, the end of the work that makes it.
  std::unique_ptr<PJRT_Buffer> take_result(size_t index, std::shared_ptr<Signal> done);

  /// A result that is there when `ready` is set.
  std::unique_ptr<PJRT_Buffer> result_to_come(size_t index, Storage elements, std::vector<int64_t> dims,
                                              std::shared_ptr<Signal> ready) const;

  PJRT_Device &device() const { return device_; }

private:
  void read(PJRT_Buffer &buffer, size_t index);
  Storage elements_of(PJRT_Buffer &buffer, const Layout &layout);
  std::shared_ptr<const Plan> plan_for(std::span<PJRT_Buffer *const> buffers) const;

  const Code &code_;
  const Placed &here_;
  PJRT_Device &device_;
  std::vector<Storage> elements_; // of all arguments
  std::vector<std::shared_ptr<Signal>> awaited_;
  std::vector<std::shared_ptr<ArrayForms>> forms_; // by the program's packed forms; null where none may be kept
  bool reads_foreign_memory_ = false;
  std::shared_ptr<const Plan> plan_;
};

} // namespace disc::pjrt
