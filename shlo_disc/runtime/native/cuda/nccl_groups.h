// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Communicators of NCCL: one for each member of a group of GPUs, made when a program first needs the group, and kept.
#pragma once

#include "gpu.h"
#include "nccl_library.h"

#include <memory>
#include <vector>

namespace disc::cuda {

using Gpus = std::vector<std::shared_ptr<Gpu>>;

/// GPUs that exchange arrays, in the order of their ranks.
class NcclGroup {
public:
  /// Throws Error(device).
  NcclGroup(const NcclLibrary &library, Gpus gpus);

  /// Waits for the work of its GPUs.
  ~NcclGroup();
  NcclGroup(const NcclGroup &) = delete;
  NcclGroup &operator=(const NcclGroup &) = delete;

  NcclComm of(size_t rank) const { return comms_[rank]; }

  /// What NCCL has found since, while work was done.
  NcclStatus async_error() const;

  /// Ends what is under way, which may wait for a member that never comes. The group cannot be used any more.
  void abort() noexcept;

private:
  const NcclLibrary &library_;
  Gpus gpus_;
  std::vector<NcclComm> comms_; // empty once aborted
};

/// The process's group of these GPUs, in this order. The caller has the only run of several GPUs that there is at a
/// time. Throws Error(device).
std::shared_ptr<NcclGroup> group_of(const Gpus &gpus);

/// Forgets a group, which is to be made anew when it is needed.
void forget_group(const std::shared_ptr<NcclGroup> &group);

/// Forgets all groups; how many there were.
int64_t forget_groups();

} // namespace disc::cuda
