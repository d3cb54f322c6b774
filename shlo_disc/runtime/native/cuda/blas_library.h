// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's cuBLASLt, found when a GPU multiplies matrices for the first time: its functions and the numbers that they
// take, as NVIDIA documents them. Nothing of NVIDIA's is needed to build.
#pragma once

#include "core/error.h"
#include "library_types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace disc::cuda {

using BlasStatus = int; // cublasStatus_t
constexpr BlasStatus kBlasSuccess = 0, kBlasNotSupported = 15;

// cublasComputeType_t
enum class ComputeType : int32_t { f32 = 68, f64 = 70, i32 = 72, f32_by_tf32 = 77 };

// cublasLtEpilogue_t
enum class LibraryEpilogue : uint32_t { none = 1, bias = 4 };

// cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t
enum class MatmulAttribute : int32_t { transpose_a = 3, transpose_b = 4, epilogue = 7, bias = 8 };
enum class LayoutAttribute : int32_t { batch_count = 5, batch_stride = 6 };
enum class PreferenceAttribute : int32_t {
  workspace_bytes = 1,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};

struct BlasState;
struct MatmulState;
struct LayoutState;
struct PreferenceState;
using BlasHandle = BlasState *;
using MatmulHandle = MatmulState *;
using LayoutHandle = LayoutState *;
using PreferenceHandle = PreferenceState *;

struct Algorithm { // cublasLtMatmulAlgo_t
  uint64_t data[8];
};

struct Heuristic { // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  BlasStatus state;
  float waves;
  int reserved[4];
};

/// F(result, member, function of the library, parameters).
#define DISC_BLAS_FUNCTIONS(F)                                                                                         \
  F(size_t, version, cublasLtGetVersion, ())                                                                           \
  F(const char *, status_name, cublasLtGetStatusName, (BlasStatus status))                                             \
  F(BlasStatus, create, cublasLtCreate, (BlasHandle *blas))                                                            \
  F(BlasStatus, destroy, cublasLtDestroy, (BlasHandle blas))                                                           \
  F(BlasStatus, create_matmul, cublasLtMatmulDescCreate,                                                               \
    (MatmulHandle *matmul, ComputeType compute, DataType scale))                                                       \
  F(BlasStatus, destroy_matmul, cublasLtMatmulDescDestroy, (MatmulHandle matmul))                                      \
  F(BlasStatus, set_matmul, cublasLtMatmulDescSetAttribute,                                                            \
    (MatmulHandle matmul, MatmulAttribute attribute, const void *value, size_t bytes))                                 \
  F(BlasStatus, create_layout, cublasLtMatrixLayoutCreate,                                                             \
    (LayoutHandle *layout, DataType type, uint64_t rows, uint64_t columns, int64_t step))                              \
  F(BlasStatus, destroy_layout, cublasLtMatrixLayoutDestroy, (LayoutHandle layout))                                    \
  F(BlasStatus, set_layout, cublasLtMatrixLayoutSetAttribute,                                                          \
    (LayoutHandle layout, LayoutAttribute attribute, const void *value, size_t bytes))                                 \
  F(BlasStatus, create_preference, cublasLtMatmulPreferenceCreate, (PreferenceHandle *preference))                     \
  F(BlasStatus, destroy_preference, cublasLtMatmulPreferenceDestroy, (PreferenceHandle preference))                    \
  F(BlasStatus, set_preference, cublasLtMatmulPreferenceSetAttribute,                                                  \
    (PreferenceHandle preference, PreferenceAttribute attribute, const void *value, size_t bytes))                     \
  F(BlasStatus, find_algorithms, cublasLtMatmulAlgoGetHeuristic,                                                       \
    (BlasHandle blas, MatmulHandle matmul, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle d,             \
     PreferenceHandle preference, int wanted, Heuristic *found, int *count))                                           \
  F(BlasStatus, multiply, cublasLtMatmul,                                                                              \
    (BlasHandle blas, MatmulHandle matmul, const void *alpha, const void *a, LayoutHandle a_layout, const void *b,     \
     LayoutHandle b_layout, const void *beta, const void *c, LayoutHandle c_layout, void *d, LayoutHandle d_layout,    \
     const Algorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream))

/// The functions of the library, each as a member. It stays open for as long as the process runs.
struct BlasLibrary {
  /// The first that there is of paths and names. Throws Error(device) where it lacks a function.
  static std::optional<BlasLibrary> open(const std::vector<std::string> &names);

  /// Throws Error(device) when a function did not succeed. `what` was asked of it, in words that follow "could not".
  void check(BlasStatus status, const std::string &what) const;

#define DISC_BLAS_MEMBER(result, member, function, parameters) result(*member) parameters = nullptr;
  DISC_BLAS_FUNCTIONS(DISC_BLAS_MEMBER)
#undef DISC_BLAS_MEMBER
};

} // namespace disc::cuda
