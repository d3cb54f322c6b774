// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The MPI library of this process, as mpi4py has loaded and initialised it.
#pragma once

#include <cstdint>
#include <string>

namespace disc {

/// Functions and constants of MPI. Its libraries share the names of functions, and differ in what handles are: integers
/// with MPICH and its kin, addresses with Open MPI and in the interface of MPI 5. On x86-64 both are passed alike, as
/// the low bits of a register, and read alike from memory that was zero.
struct MpiLibrary {
  using Handle = uintptr_t;

  /// The one that is loaded and initialised; throws ExchangeFailure, saying why there is none that can be used.
  static const MpiLibrary &instance();

  /// Throws ExchangeFailure when a function did not return 0.
  void check(int code) const;

  Handle world = 0, byte = 0, errors_return = 0;
  int any_source = 0, thread_multiple = 0;
  void *status_ignore = nullptr;

  int (*initialized)(int *flag) = nullptr;
  int (*finalized)(int *flag) = nullptr;
  int (*query_thread)(int *provided) = nullptr;
  int (*error_string)(int code, char *text, int *size) = nullptr;
  int (*comm_size)(Handle comm, int *size) = nullptr;
  int (*comm_split)(Handle comm, int color, int key, Handle *made) = nullptr;
  int (*comm_set_errhandler)(Handle comm, Handle handler) = nullptr;
  int (*isend)(const void *from, int count, Handle type, int to, int tag, Handle comm, Handle *request) = nullptr;
  int (*irecv)(void *to, int count, Handle type, int from, int tag, Handle comm, Handle *request) = nullptr;
  int (*recv)(void *to, int count, Handle type, int from, int tag, Handle comm, void *status) = nullptr;
  int (*iprobe)(int from, int tag, Handle comm, int *flag, void *status) = nullptr;
  int (*test)(Handle *request, int *flag, void *status) = nullptr;
};

} // namespace disc
