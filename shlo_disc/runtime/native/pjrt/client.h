// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The client: what a framework holds while it uses the plugin.
#pragma once

#include "cuda/nccl_groups.h"
#include "program/executable.h"
#include "compile.h"
#include "device.h"
#include "processes.h"

namespace disc::pjrt {

const std::string &platform_version();

void add_client_functions(PJRT_Api &api);

} // namespace disc::pjrt

struct PJRT_Client {
  PJRT_Client(disc::pjrt::Processes processes, const disc::pjrt::ClientOptions &options);

  /// Waits for the work that its devices have been given.
  ~PJRT_Client();

  bool has_gpus() const { return !gpus.empty(); }

  /// The number of the GPU that a device is; -1 for processors.
  int gpu_of(int64_t device_id) const;

  /// The device with a number. Throws when there is none.
  PJRT_Device &device(int64_t id) const;

  /// So many devices in order, this process's if they are enough. Throws when there are not as many.
  std::vector<int64_t> first_devices(int64_t count) const;

  /// The next number of a program's run on devices of several processes; all of them count alike.
  uint64_t next_run(const std::vector<int64_t> &device_ids);

  const disc::pjrt::Processes processes;
  const bool trusts_programs; // as the framework says, which makes their bytes itself
  const bool trusts_executables; // which are native code
  const bool is_asynchronous;    // calls may return before their runs end
  const int max_programs;        // of one function; 0: any number
  const int interpreted_microseconds; // of a run of a program that need not be compiled; 0: all are compiled
  const std::shared_ptr<disc::pjrt::Compiler> compiler; // null where this process compiles
  const std::vector<int> gpus;   // the devices; none for processors
  PJRT_TopologyDescription topology;
  std::vector<std::unique_ptr<PJRT_Device>> devices; // of all processes
  std::vector<PJRT_Device *> device_list, addressable_list; // the latter are this process's
  std::vector<PJRT_Memory *> memory_list;
  disc::cuda::SpanningGroups groups; // of GPUs of several processes; for the run that there is at a time

private:
  std::mutex mutex_;
  std::map<std::vector<int64_t>, uint64_t> runs_;
};
