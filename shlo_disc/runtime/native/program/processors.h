// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processors of this machine as a device: kernels, products and library calls on a pool of threads.
#pragma once

#include "core/communicator.h"
#include "core/device.h"
#include "core/forks.h"
#include "core/thread_pool.h"
#include "kernels/library_call.h"

#include <map>
#include <memory>
#include <vector>

namespace disc {

/// More threads than any machine has processors; a wrong number would take all that the system allows.
constexpr int kMostThreads = 4096;

/// Threads and memory, shared by the executables of one client.
class Processors : public Device {
public:
  Processors(int threads, int64_t live_limit, int64_t cache_limit, bool guard_pages)
      : Device(std::make_shared<Allocator>(live_limit, cache_limit, guard_pages)), pool(threads) {}

  bool is_host() const override { return true; }
  DLDevice dlpack() const override { return {kDLCPU, 0}; }
  std::string name() const override { return "the CPU"; }
  void write(void *to, const void *from, int64_t bytes) override;
  void read(void *to, const void *from, int64_t bytes) override { write(to, from, bytes); }
  std::shared_ptr<const Event> record() override { return nullptr; }
  void copy_rows(void *to, const void *from, const Rows &rows) override;
  std::unique_ptr<Commands> commands(const std::vector<CallSpec> &calls, const std::vector<KernelSpec> &kernels,
                                     std::string_view code) override;

  /// The threads of one of `parts` participants that run at once: each has its own share of them, at least its caller. Were
  /// there one pool, one participant would have it, and its threads would take turns with the other participants.
  ThreadPool &share(size_t parts, size_t part);

  ThreadPool pool;

private:
  using Shares = std::vector<std::unique_ptr<ThreadPool>>;

  ForkMutex mutex_;
  std::map<size_t, Shares> shares_; // by the number of parts, made when first asked for
};

/// The process's own: all processors, no limit but the machine's. Lives as long as the process.
const std::shared_ptr<Processors> &default_device();

/// What generated code for processors reaches through DiscRuntime::opaque.
struct RunContext {
  ThreadPool *pool;
  const std::vector<BoundCall> *calls;
  Communicator *communicator; // null when the program runs on one device
};

/// The runtime of one participant's run of a program on several devices.
class ParticipantRuntime {
public:
  ParticipantRuntime(const DiscRuntime &plain, ThreadPool &pool, Communicator &communicator);
  ParticipantRuntime(const ParticipantRuntime &) = delete;
  ParticipantRuntime &operator=(const ParticipantRuntime &) = delete;

  const DiscRuntime &runtime() const { return runtime_; }

private:
  RunContext context_;
  DiscRuntime runtime_;
};

} // namespace disc
