// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs of several GPUs: each participant is a thread that gives work to one of them, collectives included.
#pragma once

#include "core/communicator.h"
#include "kernels/library_call.h"
#include "nccl_groups.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace disc::cuda {

/// Throws Error(artifact) when a call is no collective as this runtime has them.
void check_collective(const CallSpec &spec);

/// A run of a program on several GPUs, by participant. There is one at a time in a process: collectives of two runs would
/// otherwise come in different orders on different GPUs, and wait for each other.
class GpuRun {
public:
  /// Makes the groups of all `calls` that there are not yet: nothing is given to a GPU then that would be waited for.
  /// Throws Error(device), also for what NCCL has found in earlier runs.
  GpuRun(Gpus gpus, const std::vector<CallSpec> &calls);
  GpuRun(const GpuRun &) = delete;
  GpuRun &operator=(const GpuRun &) = delete;

  const std::shared_ptr<Gpu> &gpu(int64_t participant) const { return gpus_[static_cast<size_t>(participant)]; }

  /// That of participants in this order.
  const NcclGroup &group(const std::vector<int64_t> &members) const { return *groups_.at(members); }

  /// Throws Error(device) for what NCCL has found.
  void check();

  /// After a failure: ends what waits for work that was never given.
  void abort() noexcept;

  /// Destroys all communicators of the process; how many groups there were.
  static int64_t forget();

private:
  void connect(const std::vector<int64_t> &members);

  std::unique_lock<std::mutex> lock_;
  Gpus gpus_;
  std::map<std::vector<int64_t>, std::shared_ptr<NcclGroup>> groups_;
};

/// While it lives, this thread is a participant of a run.
class GpuParticipant {
public:
  /// plain: the runtime of the participant's program. The run's own is another: its work is not captured.
  GpuParticipant(const GpuRun &run, Communicator &communicator, const DiscRuntime &plain);
  ~GpuParticipant();
  GpuParticipant(const GpuParticipant &) = delete;
  GpuParticipant &operator=(const GpuParticipant &) = delete;

  /// This thread's; null where it is none.
  static const GpuParticipant *current();

  const DiscRuntime &runtime() const { return runtime_; }
  const GpuRun &run() const { return run_; }
  Communicator &communicator() const { return communicator_; }

private:
  const GpuRun &run_;
  Communicator &communicator_;
  DiscRuntime runtime_;
};

/// Gives a collective of this thread's participant to its GPU, once all members have come to it. `words` as in
/// `DiscRuntime::call`; `site`: the number of the call. Throws Error(device), and Error(custom_call) when members wait in
/// vain.
void run_collective(const Gpu &gpu, const CallSpec &spec, int64_t site, const int64_t *words);

} // namespace disc::cuda
