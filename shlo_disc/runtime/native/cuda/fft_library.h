// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's cuFFT, found when a program with Fourier transforms is loaded for a GPU: its functions and the numbers that
// they take, as NVIDIA documents them. Nothing of NVIDIA's is needed to build.
#pragma once

#include "library_types.h"
#include "shared_library.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace disc::cuda {

using FftStatus = int; // cufftResult
constexpr FftStatus kFftNoMemory = 2;
using FftHandle = int; // cufftHandle

enum class FftDirection : int32_t { forward = -1, inverse = 1 };

/// F(member, function of the library, parameters). All return a status.
#define DISC_FFT_FUNCTIONS(F)                                                                                          \
  F(create, cufftCreate, (FftHandle *plan))                                                                            \
  F(destroy, cufftDestroy, (FftHandle plan))                                                                           \
  F(set_auto_allocation, cufftSetAutoAllocation, (FftHandle plan, int allocates))                                      \
  F(make_plan, cufftXtMakePlanMany,                                                                                    \
    (FftHandle plan, int rank, long long *lengths, long long *source_sizes, long long source_stride,                   \
     long long source_distance, DataType source, long long *target_sizes, long long target_stride,                     \
     long long target_distance, DataType target, long long batch, size_t *workspace_bytes, DataType computed))         \
  F(set_work_area, cufftSetWorkArea, (FftHandle plan, void *workspace))                                                \
  F(set_stream, cufftSetStream, (FftHandle plan, void *stream))                                                        \
  F(execute, cufftXtExec, (FftHandle plan, void *source, void *target, FftDirection direction))

/// The functions of the library, each as a member. It stays open for as long as the process runs.
struct FftLibrary {
  /// Opens the first that there is of paths and names, for the process; the first call that finds one counts. Throws
  /// Error(device) where there is none, or it lacks a function.
  static void open(const std::vector<std::string> &names);

  /// The one that was opened. Throws Error(device) where none was.
  static const FftLibrary &instance();

  /// Finds the functions. Throws Error(device) where the library lacks one.
  void take(const NeededLibrary &needed, const SharedLibrary &library);

  /// Throws Error(device) when a function did not succeed. `what` was asked of it, in words that follow "could not".
  void check(FftStatus status, const std::string &what) const;

#define DISC_FFT_MEMBER(member, function, parameters) FftStatus(*member) parameters = nullptr;
  DISC_FFT_FUNCTIONS(DISC_FFT_MEMBER)
#undef DISC_FFT_MEMBER
};

} // namespace disc::cuda
