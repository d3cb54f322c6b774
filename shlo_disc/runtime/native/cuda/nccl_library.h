// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's NCCL, found when a program of several GPUs is loaded: its functions and the numbers that they take, as NVIDIA
// documents them. Nothing of NVIDIA's is needed to build.
#pragma once

#include "shared_library.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace disc::cuda {

using NcclStatus = int; // ncclResult_t
constexpr NcclStatus kNcclSuccess = 0, kNcclInProgress = 7;

inline bool nccl_failed(NcclStatus status) { return status != kNcclSuccess && status != kNcclInProgress; }

// ncclDataType_t, ncclRedOp_t
enum class NcclType : int32_t { u8 = 1, i32 = 2, u32 = 3, i64 = 4, u64 = 5, f32 = 7, f64 = 8 };
enum class NcclReduction : int32_t { sum = 0, product = 1, maximum = 2, minimum = 3 };

struct NcclState;
using NcclComm = NcclState *;

/// ncclUniqueId: what ranks of several processes find each other by.
struct NcclId {
  char bytes[128];
};

/// ncclConfig_t as of NCCL 2.14: later versions have more fields behind these, and take those of an older one as not set.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  uint32_t magic = 0xcafebeef;
  uint32_t version = 21400;
  int32_t blocking = 0; // functions return before they are done: they may wait for another process
};

/// F(result, member, function of the library, parameters).
#define DISC_NCCL_FUNCTIONS(F)                                                                                         \
  F(NcclStatus, get_version, ncclGetVersion, (int *version))                                                           \
  F(const char *, error_string, ncclGetErrorString, (NcclStatus status))                                               \
  F(NcclStatus, init_all, ncclCommInitAll, (NcclComm * made, int count, const int *devices))                           \
  F(NcclStatus, unique_id, ncclGetUniqueId, (NcclId * made))                                                           \
  F(NcclStatus, init_rank, ncclCommInitRankConfig,                                                                     \
    (NcclComm * made, int count, NcclId id, int rank, NcclConfig *config))                                             \
  F(NcclStatus, finalize, ncclCommFinalize, (NcclComm comm))                                                           \
  F(NcclStatus, destroy, ncclCommDestroy, (NcclComm comm))                                                             \
  F(NcclStatus, abort, ncclCommAbort, (NcclComm comm))                                                                 \
  F(NcclStatus, async_error, ncclCommGetAsyncError, (NcclComm comm, NcclStatus *found))                                \
  F(NcclStatus, group_start, ncclGroupStart, ())                                                                       \
  F(NcclStatus, group_end, ncclGroupEnd, ())                                                                           \
  F(NcclStatus, all_reduce, ncclAllReduce,                                                                             \
    (const void *from, void *to, size_t count, NcclType type, NcclReduction reduction, NcclComm comm, void *stream))   \
  F(NcclStatus, reduce_scatter, ncclReduceScatter,                                                                     \
    (const void *from, void *to, size_t count, NcclType type, NcclReduction reduction, NcclComm comm, void *stream))   \
  F(NcclStatus, all_gather, ncclAllGather,                                                                             \
    (const void *from, void *to, size_t count, NcclType type, NcclComm comm, void *stream))                            \
  F(NcclStatus, broadcast, ncclBroadcast,                                                                              \
    (const void *from, void *to, size_t count, NcclType type, int root, NcclComm comm, void *stream))                  \
  F(NcclStatus, send, ncclSend,                                                                                        \
    (const void *from, size_t count, NcclType type, int peer, NcclComm comm, void *stream))                            \
  F(NcclStatus, receive, ncclRecv, (void *to, size_t count, NcclType type, int peer, NcclComm comm, void *stream))

/// The functions of the library, each as a member. It stays open for as long as the process runs.
struct NcclLibrary {
  /// Opens the first that there is of paths and names, for the process; the first call that finds one counts. Throws
  /// Error(device) where there is none, or it lacks a function.
  static void open(const std::vector<std::string> &names);

  /// The one that was opened. Throws Error(device) where none was.
  static const NcclLibrary &instance();

  /// Finds the functions. Throws Error(device) where the library lacks one.
  void take(const NeededLibrary &needed, const SharedLibrary &library);

  /// Throws Error(device) when a function did not succeed. `what` was asked of it, in words that follow "could not".
  void check(NcclStatus status, const std::string &what) const;

#define DISC_NCCL_MEMBER(result, member, function, parameters) result(*member) parameters = nullptr;
  DISC_NCCL_FUNCTIONS(DISC_NCCL_MEMBER)
#undef DISC_NCCL_MEMBER
};

/// Calls of `body` that make progress together; a group that was begun is ended in any case.
template <typename Body> NcclStatus together(const NcclLibrary &nccl, const Body &body) {
  if (NcclStatus status = nccl.group_start(); nccl_failed(status))
    return status;
  NcclStatus status = kNcclSuccess;
  try {
    status = body();
  } catch (...) {
    nccl.group_end();
    throw;
  }
  NcclStatus end = nccl.group_end();
  return nccl_failed(status) ? status : end;
}

} // namespace disc::cuda
