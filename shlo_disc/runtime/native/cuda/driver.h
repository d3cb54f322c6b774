// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's driver API, found when a GPU is asked for: nothing of NVIDIA's is needed to build or to load the runtime.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace disc::cuda {

using Code = int;         // CUresult; 0 is success
using Address = uint64_t; // CUdeviceptr

struct ContextState;
struct StreamState;
struct EventState;
struct ModuleState;
struct FunctionState;
struct GraphState;
struct GraphProgramState;
using ContextHandle = ContextState *;
using StreamHandle = StreamState *;
using EventHandle = EventState *;
using ModuleHandle = ModuleState *;
using FunctionHandle = FunctionState *;
using GraphHandle = GraphState *;
using GraphProgramHandle = GraphProgramState *;

/// CUDA_MEMCPY2D: rows of bytes, each so many bytes behind the one before.
struct CopyOfRows {
  /// One side of the copy.
  struct Side {
    size_t x = 0, y = 0;
    int kind = 2; // CU_MEMORYTYPE_DEVICE
    const void *host = nullptr;
    Address device = 0;
    void *array = nullptr;
    size_t step = 0;
  };
  Side from, to;
  size_t bytes = 0, rows = 0;
};
static_assert(sizeof(CopyOfRows) == 16 * sizeof(uint64_t));

/// CUtensorMap: memory as copies of boxes see it. Its words are the driver's own.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

/// F(member, function of the library, parameters).
#define DISC_CUDA_FUNCTIONS(F)                                                                                         \
  F(init, cuInit, (unsigned flags))                                                                                    \
  F(driver_version, cuDriverGetVersion, (int *version))                                                                \
  F(error_name, cuGetErrorName, (Code code, const char **text))                                                        \
  F(error_string, cuGetErrorString, (Code code, const char **text))                                                    \
  F(device_count, cuDeviceGetCount, (int *count))                                                                      \
  F(device_get, cuDeviceGet, (int *device, int ordinal))                                                               \
  F(device_name, cuDeviceGetName, (char *name, int length, int device))                                                \
  F(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, int device))                                                   \
  F(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                                   \
  F(retain_context, cuDevicePrimaryCtxRetain, (ContextHandle *context, int device))                                    \
  F(release_context, cuDevicePrimaryCtxRelease_v2, (int device))                                                       \
  F(push_context, cuCtxPushCurrent_v2, (ContextHandle context))                                                        \
  F(pop_context, cuCtxPopCurrent_v2, (ContextHandle *context))                                                         \
  F(wait_for_context, cuCtxSynchronize, ())                                                                            \
  F(memory_info, cuMemGetInfo_v2, (size_t *free, size_t *total))                                                       \
  F(allocate, cuMemAlloc_v2, (Address *address, size_t bytes))                                                         \
  F(release, cuMemFree_v2, (Address address))                                                                          \
  F(allocate_pinned, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags))                                   \
  F(release_pinned, cuMemFreeHost, (void *address))                                                                    \
  F(copy_in, cuMemcpyHtoDAsync_v2, (Address to, const void *from, size_t bytes, StreamHandle stream))                  \
  F(copy_out, cuMemcpyDtoHAsync_v2, (void *to, Address from, size_t bytes, StreamHandle stream))                       \
  F(copy, cuMemcpyDtoDAsync_v2, (Address to, Address from, size_t bytes, StreamHandle stream))                         \
  F(copy_rows, cuMemcpy2DAsync_v2, (const CopyOfRows *copy, StreamHandle stream))                                      \
  F(pointer_attribute, cuPointerGetAttribute, (void *value, int attribute, Address address))                           \
  F(fill, cuMemsetD8Async, (Address to, unsigned char byte, size_t bytes, StreamHandle stream))                        \
  F(create_stream, cuStreamCreate, (StreamHandle *stream, unsigned flags))                                             \
  F(destroy_stream, cuStreamDestroy_v2, (StreamHandle stream))                                                         \
  F(wait_for_stream, cuStreamSynchronize, (StreamHandle stream))                                                       \
  F(stream_waits, cuStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))                         \
  F(create_event, cuEventCreate, (EventHandle *event, unsigned flags))                                                 \
  F(destroy_event, cuEventDestroy_v2, (EventHandle event))                                                             \
  F(record_event, cuEventRecord, (EventHandle event, StreamHandle stream))                                             \
  F(elapsed_time, cuEventElapsedTime, (float *milliseconds, EventHandle begin, EventHandle end))                       \
  F(query_event, cuEventQuery, (EventHandle event))                                                                    \
  F(wait_for_event, cuEventSynchronize, (EventHandle event))                                                           \
  F(load_module, cuModuleLoadDataEx,                                                                                   \
    (ModuleHandle *module, const void *image, unsigned count, const int *options, void **values))                      \
  F(unload_module, cuModuleUnload, (ModuleHandle module))                                                              \
  F(find_function, cuModuleGetFunction, (FunctionHandle *function, ModuleHandle module, const char *name))             \
  F(function_attribute, cuFuncGetAttribute, (int *value, int attribute, FunctionHandle function))                      \
  F(set_function_attribute, cuFuncSetAttribute, (FunctionHandle function, int attribute, int value))                   \
  F(encode_tiled, cuTensorMapEncodeTiled,                                                                              \
    (TensorMap * map, int type, unsigned rank, void *address, const uint64_t *sizes, const uint64_t *strides,          \
     const unsigned *box, const unsigned *steps, int interleaving, int swizzle, int promotion, int outside))           \
  F(launch, cuLaunchKernel,                                                                                            \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,   \
     unsigned block_z, unsigned shared_bytes, StreamHandle stream, void **parameters, void **extra))                   \
  F(begin_capture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))                                           \
  F(end_capture, cuStreamEndCapture, (StreamHandle stream, GraphHandle *graph))                                        \
  F(make_graph_program, cuGraphInstantiateWithFlags,                                                                   \
    (GraphProgramHandle *program, GraphHandle graph, unsigned long long flags))                                        \
  F(launch_graph, cuGraphLaunch, (GraphProgramHandle program, StreamHandle stream))                                    \
  F(destroy_graph_program, cuGraphExecDestroy, (GraphProgramHandle program))                                           \
  F(destroy_graph, cuGraphDestroy, (GraphHandle graph))

/// The functions of the library, each as a member.
struct Driver {
  /// The one of this process, initialised. Throws Error(device) saying why there is none.
  static const Driver &instance();

  /// Throws Error(device), or AllocationFailure where memory ran out, when a function did not succeed. `what` was
  /// asked of it, in words that follow "could not".
  void check(Code code, const std::string &what) const;

  /// The error's name and meaning in the driver's words.
  std::string text_of(Code code) const;

#define DISC_CUDA_MEMBER(member, function, parameters) Code(*member) parameters = nullptr;
  DISC_CUDA_FUNCTIONS(DISC_CUDA_MEMBER)
#undef DISC_CUDA_MEMBER
};

constexpr Code kSuccess = 0;
constexpr Code kInvalidValue = 1;
constexpr Code kOutOfMemory = 2;
constexpr Code kNotReady = 600;

/// Whether a context that has met this error can do nothing any more.
bool is_sticky(Code code);

} // namespace disc::cuda
