// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The processes of a job: what they tell each other when their clients are made, through a store of keys and values
// that the framework has.
#pragma once

#include "collectives/transport.h"
#include "pjrt_c_api.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace disc::pjrt {

/// What a client is created with.
struct ClientOptions {
  ClientOptions(const PJRT_NamedValue *values, size_t count);

  int device_count = 1; // of this process
  std::vector<int> gpus;  // the devices are these; none: they are the processors
  int node_id = 0;
  int num_nodes = 1;
  std::chrono::seconds collective_timeout{1800}; // XLA's
  std::string mpi_failure;                       // why MPI cannot be used; empty when it can
  std::string address;                           // where the others find this process if there is no MPI; empty: nowhere
  bool trusts_programs = false;                  // they are made by a serialiser of this process
  std::optional<bool> trust;                     // serialized executables may be loaded
  bool is_asynchronous = true;                   // calls may return before their runs end
  int max_programs = 0;                          // of one function; 0: any number
  int interpreted_microseconds = 0;              // of a run of a program that need not be compiled
  std::string compiler;                          // the Python interpreter that compiles; empty: none is named
  std::chrono::seconds compile_limit{0};         // for one compile; 0: any
  std::string blas;                              // the library of BLAS and LAPACK for the process; empty: as it is
};

/// Refuses a number of devices that is not one.
int checked_device_count(int64_t count);

/// A GPU, as its process describes it to the others.
struct GpuDescription {
  std::string name, compute_capability;
};

/// A job as one of its processes sees it.
struct Processes {
  int index = 0;
  std::vector<int> device_counts; // by process
  std::vector<std::vector<GpuDescription>> gpus; // by process; none where devices are processors
  std::shared_ptr<Transport> transport; // null when there is none
  std::string obstacle;                 // why there is none
  std::chrono::seconds collective_timeout;
};

/// Finds the other processes and connects with them. Throws the store's errors, such as that a process does not come.
Processes join(const ClientOptions &options, const PJRT_Client_Create_Args &args);

} // namespace disc::pjrt
