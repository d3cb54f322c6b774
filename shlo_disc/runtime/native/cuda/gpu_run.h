// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs of programs on several GPUs: each participant is a thread that gives work to one of them, collectives included.
#pragma once

#include "collectives/spanning_run.h"
#include "core/abi.h"
#include "core/communicator.h"
#include "kernels/library_call.h"
#include "nccl_groups.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

namespace disc::cuda {

/// A run of a program on several GPUs, by participant. There is one at a time in a process: collectives of two runs would
/// otherwise come in different orders on different GPUs, and wait for each other.
///
/// Where a collective has members in several processes, a GPU may wait for one that is lost, and whoever waits for that
/// GPU does so in the driver. A thread watches: after a failure it aborts the communicators, which ends all such waiting.
class GpuRun {
public:
  using Members = std::vector<int64_t>;

  /// Participants of this process alone. Makes the groups of all `calls` that there are not yet: nothing is given to a
  /// GPU then that would be waited for. Throws Error(device), also for what NCCL has found in earlier runs.
  GpuRun(Gpus gpus, const std::vector<CallSpec> &calls);

  /// Participants of several processes. gpus: null for those elsewhere. devices: of the participants, in the job. groups:
  /// those that there are; others are made when the participants `begin`.
  GpuRun(Gpus gpus, const std::vector<CallSpec> &calls, SpanningRun &run, std::span<const int64_t> devices,
         SpanningGroups &groups);

  ~GpuRun();
  GpuRun(const GpuRun &) = delete;
  GpuRun &operator=(const GpuRun &) = delete;

  /// Connects a participant's GPU with those in other processes. Throws Error.
  void begin(Communicator &participant);

  /// Gives a collective to a GPU of the group; the members have met. `what`, `body`: as for NcclGroup::give. Throws Error,
  /// and ExchangeFailure when another process is lost.
  void give(const Gpu &gpu, const Members &members, int64_t participant, const std::string &what,
            const NcclGroup::Body &body);

  /// Which of `bytes` bytes the members of a meeting need of each other: one of each process has those of the others'.
  Needs needs(const Members &members, int64_t bytes) const;

  /// Ends a participant's part, whose work is done with `done`, or when that is null: in several processes, when it is in
  /// all of them. Throws Error.
  void finish(Communicator &participant, const disc::Event *done);

  /// Throws Error(device) for what NCCL has found.
  void check();

  /// Throws Error for what the watch has found: what GPUs were given is not done, and their data is not that of the
  /// program.
  void check_watch();

  /// After a failure: ends what waits for work that was never given.
  void abort() noexcept;

  /// Destroys all communicators of GPUs of this process alone; how many groups there were.
  static int64_t forget();

private:
  using Time = SpanningRun::Time;

  /// A collective that a GPU has been given, from when all before it is done until it is done itself.
  struct Given {
    std::shared_ptr<const disc::Event> before, done;
    Members members;
    int64_t number = 0; // among the participant's with these members
    std::optional<Time> begun; // when it was first seen to wait
  };

  void connect(const std::vector<CallSpec> &calls);
  void connect(const Members &members);
  bool spans(const Members &members) const;
  bool is_late_here(const Given &given) const;
  const std::shared_ptr<Gpu> &gpu(int64_t participant) const;
  bool speaks(int64_t participant, const Members &members) const;
  void join(Communicator &participant, const Members &members, NcclGroup &group);
  void exchange(Communicator &participant, const Exchange &exchange, const Communicator::Reader &read) const;
  [[noreturn]] void rethrow_explained(const Members &members) const;
  NcclGroup::Look look_at(const Members &members) const;
  void watch();
  void look();
  void stop_watch() noexcept;
  void abort_groups() noexcept;

  std::unique_lock<std::mutex> lock_;
  Gpus gpus_;
  std::map<Members, std::shared_ptr<NcclGroup>> groups_;
  std::set<Members> joins_; // the groups to be connected
  SpanningRun *spanning_ = nullptr;
  std::span<const int64_t> devices_;
  SpanningGroups *kept_ = nullptr;

  std::mutex mutex_; // of what follows
  std::condition_variable changed_;
  std::map<int64_t, std::deque<Given>> given_; // by participant
  std::map<std::pair<int64_t, Members>, int64_t> counts_; // of what has been given, by participant and members
  std::optional<Time> failed_;                 // when NCCL was first seen to have failed
  std::exception_ptr failure_;                 // what the watch has found
  bool is_over_ = false;
  std::thread watch_; // where a group of the program spans processes, this one or not
};

/// While it lives, this thread is a participant of a run.
class GpuParticipant {
public:
  /// plain: the runtime of the participant's program. The run's own is another: its work is not captured.
  GpuParticipant(GpuRun &run, Communicator &communicator, const DiscRuntime &plain);
  ~GpuParticipant();
  GpuParticipant(const GpuParticipant &) = delete;
  GpuParticipant &operator=(const GpuParticipant &) = delete;

  /// This thread's; null where it is none.
  static const GpuParticipant *current();

  const DiscRuntime &runtime() const { return runtime_; }
  GpuRun &run() const { return run_; }
  Communicator &communicator() const { return communicator_; }

private:
  GpuRun &run_;
  Communicator &communicator_;
  DiscRuntime runtime_;
};

/// Copies data that a program decides by to the host, once the work before is done. Throws Error, also where this thread's
/// run has failed; nothing is written then.
void read_in_run(const Gpu &gpu, void *to, Address from, size_t bytes);

} // namespace disc::cuda
