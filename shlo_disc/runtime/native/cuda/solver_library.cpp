// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "solver_library.h"

namespace disc::cuda {

namespace {

OpenedOnce<SolverLibrary> opened_solver{{"on GPUs, a program with linear algebra", "cuSOLVER",
                                         "nvidia-cusolver, or nvidia-cusolver-cu12 for a driver of CUDA 12"}};
OpenedOnce<CublasLibrary> opened_blas{{"on GPUs, a program with linear algebra", "cuBLAS",
                                         "nvidia-cublas, or nvidia-cublas-cu12 for a driver of CUDA 12"}};

/// The names of cusolverStatus_t from 0 on; later ones have their number alone.
constexpr const char *kSolverStatusNames[] = {
    "CUSOLVER_STATUS_SUCCESS",
    "CUSOLVER_STATUS_NOT_INITIALIZED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUSOLVER_STATUS_INVALID_VALUE",
    "CUSOLVER_STATUS_ARCH_MISMATCH",
    "CUSOLVER_STATUS_MAPPING_ERROR",
    "CUSOLVER_STATUS_EXECUTION_FAILED",
    "CUSOLVER_STATUS_INTERNAL_ERROR",
    "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
    "CUSOLVER_STATUS_NOT_SUPPORTED",
};

/// The same of cublasStatus_t, which leaves out numbers.
constexpr const char *kCublasStatusNames[] = {
    "CUBLAS_STATUS_SUCCESS",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    nullptr,
    "CUBLAS_STATUS_ALLOC_FAILED",
    nullptr,
    nullptr,
    nullptr,
    "CUBLAS_STATUS_INVALID_VALUE",
    "CUBLAS_STATUS_ARCH_MISMATCH",
    nullptr,
    nullptr,
    "CUBLAS_STATUS_MAPPING_ERROR",
    nullptr,
    "CUBLAS_STATUS_EXECUTION_FAILED",
    "CUBLAS_STATUS_INTERNAL_ERROR",
    "CUBLAS_STATUS_NOT_SUPPORTED",
};

} // namespace

void SolverLibrary::open(const std::vector<std::string> &names) { opened_solver.open(names); }

const SolverLibrary &SolverLibrary::instance() { return opened_solver.get(); }

void SolverLibrary::take(const NeededLibrary &needed, const SharedLibrary &library) {
#define DISC_SOLVER_FIND(member, function, parameters)                                                                 \
  member = reinterpret_cast<decltype(member)>(needed.find(library, #function));
#define DISC_SOLVER_FIND_TYPED(member, real, complex, parameters)                                                      \
  member = {reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cusolverDnS" #real)),                 \
            reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cusolverDnD" #real)),                 \
            reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cusolverDnC" #complex)),              \
            reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cusolverDnZ" #complex))};
  DISC_SOLVER_FUNCTIONS(DISC_SOLVER_FIND)
  DISC_SOLVER_TYPED_FUNCTIONS(DISC_SOLVER_FIND_TYPED)
#undef DISC_SOLVER_FIND
#undef DISC_SOLVER_FIND_TYPED
}

void SolverLibrary::check(SolverStatus status, const std::string &what) const {
  check_status(status, kSolverStatusNames, what);
}

void CublasLibrary::open(const std::vector<std::string> &names) { opened_blas.open(names); }

const CublasLibrary &CublasLibrary::instance() { return opened_blas.get(); }

void CublasLibrary::take(const NeededLibrary &needed, const SharedLibrary &library) {
#define DISC_CUBLAS_FIND(member, function, parameters)                                                                 \
  member = reinterpret_cast<decltype(member)>(needed.find(library, #function));
#define DISC_CUBLAS_FIND_TYPED(member, function, parameters)                                                           \
  member = {reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cublasS" #function)),                 \
            reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cublasD" #function)),                 \
            reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cublasC" #function)),                 \
            reinterpret_cast<decltype(member)::value_type>(needed.find(library, "cublasZ" #function))};
  DISC_CUBLAS_FUNCTIONS(DISC_CUBLAS_FIND)
  DISC_CUBLAS_TYPED_FUNCTIONS(DISC_CUBLAS_FIND_TYPED)
#undef DISC_CUBLAS_FIND
#undef DISC_CUBLAS_FIND_TYPED
}

void CublasLibrary::check(CublasStatus status, const std::string &what) const {
  check_status(status, kCublasStatusNames, what);
}

} // namespace disc::cuda
