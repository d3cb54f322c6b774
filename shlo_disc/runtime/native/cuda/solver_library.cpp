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

#define DISC_FIND(member, function, parameters)                                                                        \
  member = reinterpret_cast<decltype(member)>(needed.find(library, #function));

/// Finds a function of each type: its name has a letter behind that of the library.
template <typename Function>
void find(std::array<Function, 4> &found, const NeededLibrary &needed, const SharedLibrary &library, std::string of,
          const char *real, const char *complex) {
  constexpr std::string_view letters = "SDCZ";
  for (size_t i = 0; i < found.size(); ++i)
    found[i] = reinterpret_cast<Function>(needed.find(library, (of + letters[i] + (i < 2 ? real : complex)).c_str()));
}

} // namespace

void SolverLibrary::open(const std::vector<std::string> &names) { opened_solver.open(names); }

const SolverLibrary &SolverLibrary::instance() { return opened_solver.get(); }

void SolverLibrary::take(const NeededLibrary &needed, const SharedLibrary &library) {
#define DISC_FIND_TYPED(member, real, complex, parameters) find(member, needed, library, "cusolverDn", #real, #complex);
  DISC_SOLVER_FUNCTIONS(DISC_FIND)
  DISC_SOLVER_TYPED_FUNCTIONS(DISC_FIND_TYPED)
#undef DISC_FIND_TYPED
}

void SolverLibrary::check(SolverStatus status, const std::string &what) const {
  check_status(status, kSolverStatusNames, what);
}

void CublasLibrary::open(const std::vector<std::string> &names) { opened_blas.open(names); }

const CublasLibrary &CublasLibrary::instance() { return opened_blas.get(); }

void CublasLibrary::take(const NeededLibrary &needed, const SharedLibrary &library) {
#define DISC_FIND_TYPED(member, function, parameters) find(member, needed, library, "cublas", #function, #function);
  DISC_CUBLAS_FUNCTIONS(DISC_FIND)
  DISC_CUBLAS_TYPED_FUNCTIONS(DISC_FIND_TYPED)
#undef DISC_FIND_TYPED
}

void CublasLibrary::check(CublasStatus status, const std::string &what) const {
  check_status(status, kCublasStatusNames, what);
}

} // namespace disc::cuda
