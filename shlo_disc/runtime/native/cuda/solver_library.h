// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's cuSOLVER, and what cuBLAS has for it: found when a program with linear algebra is loaded for a GPU. Their
// functions and the numbers that they take, as NVIDIA documents them. Nothing of NVIDIA's is needed to build.
#pragma once

#include "library_types.h"
#include "shared_library.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace disc::cuda {

using SolverStatus = int; // cusolverStatus_t
using CublasStatus = int; // cublasStatus_t

struct SolverState;
struct SolverOptionsState;
struct CublasState;
using SolverHandle = SolverState *;         // cusolverDnHandle_t
using SolverOptions = SolverOptionsState *; // cusolverDnParams_t
using CublasHandle = CublasState *;         // cublasHandle_t

/// F(member, function of the library, parameters). All return a status. Sizes are 64 bits wide, and matrices of any
/// type; each function has one that asks for the bytes of its workspaces, on the device and on the host.
#define DISC_SOLVER_FUNCTIONS(F)                                                                                       \
  F(create, cusolverDnCreate, (SolverHandle * made))                                                                   \
  F(destroy, cusolverDnDestroy, (SolverHandle solver))                                                                 \
  F(set_stream, cusolverDnSetStream, (SolverHandle solver, void *stream))                                              \
  F(create_options, cusolverDnCreateParams, (SolverOptions * made))                                                    \
  F(destroy_options, cusolverDnDestroyParams, (SolverOptions options))                                                 \
  F(potrf_bytes, cusolverDnXpotrf_bufferSize,                                                                          \
    (SolverHandle solver, SolverOptions options, Triangle triangle, int64_t n, DataType type, const void *a,           \
     int64_t a_step, DataType computed, size_t *device_bytes, size_t *host_bytes))                                     \
  F(potrf, cusolverDnXpotrf,                                                                                           \
    (SolverHandle solver, SolverOptions options, Triangle triangle, int64_t n, DataType type, void *a, int64_t a_step, \
     DataType computed, void *device, size_t device_bytes, void *host, size_t host_bytes, int *info))                  \
  F(geqrf_bytes, cusolverDnXgeqrf_bufferSize,                                                                          \
    (SolverHandle solver, SolverOptions options, int64_t m, int64_t n, DataType type, const void *a, int64_t a_step,   \
     DataType tau_type, const void *tau, DataType computed, size_t *device_bytes, size_t *host_bytes))                 \
  F(geqrf, cusolverDnXgeqrf,                                                                                           \
    (SolverHandle solver, SolverOptions options, int64_t m, int64_t n, DataType type, void *a, int64_t a_step,         \
     DataType tau_type, void *tau, DataType computed, void *device, size_t device_bytes, void *host,                   \
     size_t host_bytes, int *info))                                                                                    \
  F(syevd_bytes, cusolverDnXsyevd_bufferSize,                                                                          \
    (SolverHandle solver, SolverOptions options, Vectors vectors, Triangle triangle, int64_t n, DataType type,         \
     const void *a, int64_t a_step, DataType value_type, const void *values, DataType computed, size_t *device_bytes,  \
     size_t *host_bytes))                                                                                              \
  F(syevd, cusolverDnXsyevd,                                                                                           \
    (SolverHandle solver, SolverOptions options, Vectors vectors, Triangle triangle, int64_t n, DataType type,         \
     void *a, int64_t a_step, DataType value_type, void *values, DataType computed, void *device, size_t device_bytes, \
     void *host, size_t host_bytes, int *info))                                                                        \
  F(gesvd_bytes, cusolverDnXgesvd_bufferSize,                                                                          \
    (SolverHandle solver, SolverOptions options, signed char left, signed char right, int64_t m, int64_t n,            \
     DataType type, const void *a, int64_t a_step, DataType value_type, const void *values, DataType u_type,           \
     const void *u, int64_t u_step, DataType vt_type, const void *vt, int64_t vt_step, DataType computed,              \
     size_t *device_bytes, size_t *host_bytes))                                                                        \
  F(gesvd, cusolverDnXgesvd,                                                                                           \
    (SolverHandle solver, SolverOptions options, signed char left, signed char right, int64_t m, int64_t n,            \
     DataType type, void *a, int64_t a_step, DataType value_type, void *values, DataType u_type, void *u,              \
     int64_t u_step, DataType vt_type, void *vt, int64_t vt_step, DataType computed, void *device,                     \
     size_t device_bytes, void *host, size_t host_bytes, int *info))

/// The same with a function for each of f32, f64, complex64 and complex128, whose sizes are 32 bits wide, and whose
/// workspace is measured in elements: F(member, function but for its letter, rest of its name for real numbers, rest of
/// its name for complex ones, parameters).
#define DISC_SOLVER_TYPED_FUNCTIONS(F)                                                                                 \
  F(getrf_elements, getrf_bufferSize, getrf_bufferSize,                                                                \
    (SolverHandle solver, int m, int n, void *a, int a_step, int *elements))                                           \
  F(getrf, getrf, getrf,                                                                                               \
    (SolverHandle solver, int m, int n, void *a, int a_step, void *workspace, int *pivots, int *info))                 \
  F(potrf_batched, potrfBatched, potrfBatched,                                                                         \
    (SolverHandle solver, Triangle triangle, int n, void **a, int a_step, int *info, int entries))                     \
  F(orgqr_elements, orgqr_bufferSize, ungqr_bufferSize,                                                                \
    (SolverHandle solver, int m, int n, int k, const void *a, int a_step, const void *tau, int *elements))             \
  F(orgqr, orgqr, ungqr,                                                                                               \
    (SolverHandle solver, int m, int n, int k, void *a, int a_step, const void *tau, void *workspace, int elements,    \
     int *info))                                                                                                       \
  F(ormqr_elements, ormqr_bufferSize, unmqr_bufferSize,                                                                \
    (SolverHandle solver, Side side, Operation operation, int m, int n, int k, const void *a, int a_step,              \
     const void *tau, const void *c, int c_step, int *elements))                                                       \
  F(ormqr, ormqr, unmqr,                                                                                               \
    (SolverHandle solver, Side side, Operation operation, int m, int n, int k, const void *a, int a_step,              \
     const void *tau, void *c, int c_step, void *workspace, int elements, int *info))

/// cuBLAS, which solves equations of triangles, transposes, and factors many small matrices:
/// F(member, function, parameters).
#define DISC_CUBLAS_FUNCTIONS(F)                                                                                       \
  F(create, cublasCreate_v2, (CublasHandle * made))                                                                    \
  F(destroy, cublasDestroy_v2, (CublasHandle blas))                                                                    \
  F(set_stream, cublasSetStream_v2, (CublasHandle blas, void *stream))

/// Those of each type: F(member, rest of the name, parameters).
#define DISC_CUBLAS_TYPED_FUNCTIONS(F)                                                                                 \
  F(trsm, trsm_v2,                                                                                                     \
    (CublasHandle blas, Side side, Triangle triangle, Operation operation, Diagonal diagonal, int m, int n,            \
     const void *factor, const void *a, int a_step, void *b, int b_step))                                              \
  F(trsm_batched, trsmBatched,                                                                                         \
    (CublasHandle blas, Side side, Triangle triangle, Operation operation, Diagonal diagonal, int m, int n,            \
     const void *factor, void *const *a, int a_step, void *const *b, int b_step, int entries))                         \
  F(getrf_batched, getrfBatched,                                                                                       \
    (CublasHandle blas, int n, void *const *a, int a_step, int *pivots, int *info, int entries))                       \
  F(geam, geam,                                                                                                        \
    (CublasHandle blas, Operation operation, Operation added_operation, int m, int n, const void *factor,              \
     const void *a, int a_step, const void *added_factor, const void *added, int added_step, void *c, int c_step))

/// A function for each type: f32, f64, complex64, complex128.
template <typename Function> using ByType = std::array<Function *, 4>;

/// The functions of cuSOLVER, each as a member. It stays open for as long as the process runs.
struct SolverLibrary {
  static constexpr SolverStatus no_memory = 2;

  /// Opens the first that there is of paths and names, for the process; the first call that finds one counts. Throws
  /// Error(device) where there is none, or it lacks a function.
  static void open(const std::vector<std::string> &names);

  /// The one that was opened. Throws Error(device) where none was.
  static const SolverLibrary &instance();

  /// Finds the functions. Throws Error(device) where the library lacks one.
  void take(const NeededLibrary &needed, const SharedLibrary &library);

  /// Throws Error(device) when a function did not succeed. `what` was asked of it, in words that follow "could not".
  void check(SolverStatus status, const std::string &what) const;

#define DISC_SOLVER_MEMBER(member, function, parameters) SolverStatus(*member) parameters = nullptr;
#define DISC_SOLVER_TYPED_MEMBER(member, real, complex, parameters) ByType<SolverStatus parameters> member{};
  DISC_SOLVER_FUNCTIONS(DISC_SOLVER_MEMBER)
  DISC_SOLVER_TYPED_FUNCTIONS(DISC_SOLVER_TYPED_MEMBER)
#undef DISC_SOLVER_MEMBER
#undef DISC_SOLVER_TYPED_MEMBER
};

/// The functions of cuBLAS, in the same way.
struct CublasLibrary {
  static constexpr CublasStatus no_memory = 3;

  static void open(const std::vector<std::string> &names);
  static const CublasLibrary &instance();
  void take(const NeededLibrary &needed, const SharedLibrary &library);
  void check(CublasStatus status, const std::string &what) const;

#define DISC_CUBLAS_MEMBER(member, function, parameters) CublasStatus(*member) parameters = nullptr;
#define DISC_CUBLAS_TYPED_MEMBER(member, function, parameters) ByType<CublasStatus parameters> member{};
  DISC_CUBLAS_FUNCTIONS(DISC_CUBLAS_MEMBER)
  DISC_CUBLAS_TYPED_FUNCTIONS(DISC_CUBLAS_TYPED_MEMBER)
#undef DISC_CUBLAS_MEMBER
#undef DISC_CUBLAS_TYPED_MEMBER
};

} // namespace disc::cuda
