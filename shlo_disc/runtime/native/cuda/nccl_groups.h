// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Communicators of NCCL: one for each member of a group of GPUs, made when a program first needs the group, and kept.
#pragma once

#include "gpu.h"
#include "nccl_library.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace disc::cuda {

/// By participant or rank; null for a GPU of another process.
using Gpus = std::vector<std::shared_ptr<Gpu>>;

/// GPUs that exchange arrays, in the order of their ranks. Where all are of this process, NCCL's functions return when they
/// are done; else they do not wait for other processes, and what they have begun is asked for again and again.
class NcclGroup {
public:
  /// Connects them if all are of this process; else `join` does. Throws Error(device).
  NcclGroup(const NcclLibrary &library, Gpus gpus);

  /// Waits for the work of its GPUs.
  ~NcclGroup();
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;

  bool spans_processes() const { return spans_processes_; }
  bool is_joined() const { return is_joined_; }

  /// Called again and again by who waits for other processes; throws to end that.
  using Look = std::function<void()>;

  /// Connects the GPUs of this process with those of others, which do the same with this id. Throws Error(device).
  void join(const NcclId &id, const Look &look);

  /// Gives work of a rank of this process: body(communicator) returns a status. `what`: as in NcclLibrary::check. Throws
  /// Error(device).
  using Body = std::function<NcclStatus(NcclComm comm)>;
  void give(size_t rank, const std::string &what, const Look &look, const Body &body);

  /// What NCCL has found since, while work was done.
  NcclStatus async_error();

  /// With other processes, before it is destroyed: what is on its way to them arrives. What is not done at the limit is
  /// aborted.
  void begin_end() noexcept;
  void wait_for_end(std::chrono::steady_clock::time_point limit) noexcept;

  /// Ends what is under way, which may wait for a member that never comes. The group cannot be used any more.
  void abort() noexcept;

private:
  struct Rank {
    std::shared_ptr<Gpu> gpu;
    NcclComm comm = nullptr;
    std::mutex mutex; // one thread at a time calls a function on the communicator
  };

  NcclStatus state_of(Rank &rank);
  void complete(Rank &rank, NcclStatus status, const std::string &what, const Look &look);
  template <typename Visit> void for_each_here(const Visit &visit) noexcept;
  NcclStatus begin_ranks(const NcclId &id);

  const NcclLibrary &library_;
  std::vector<std::unique_ptr<Rank>> ranks_; // null for one of another process
  bool spans_processes_ = false, is_joined_ = false;
};

/// Groups with GPUs of other processes, by the numbers of devices in the job. They live as long as the client that has
/// them: all processes have to have the same ones.
using SpanningGroups = std::map<std::vector<int64_t>, std::shared_ptr<NcclGroup>>;

/// Destroys them, with a while for other processes to do the same.
void close_groups(SpanningGroups &groups) noexcept;

/// The process's group of these GPUs, in this order, all of this process. The caller has the only run of several GPUs
/// that there is at a time. Throws Error(device).
std::shared_ptr<NcclGroup> group_of(const Gpus &gpus);

/// Forgets a group of this process, which is to be made anew when it is needed.
void forget_group(const std::shared_ptr<NcclGroup> &group);

/// Forgets all groups of this process; how many there were.
int64_t forget_groups();

} // namespace disc::cuda
