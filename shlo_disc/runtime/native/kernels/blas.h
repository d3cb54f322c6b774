// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The BLAS that SciPy already carries, reached through the function pointers of scipy.linalg.cython_blas.
#pragma once

#include <mutex>

namespace disc {

template <typename T>
using Gemm = void (*)(char *trans_a, char *trans_b, int *m, int *n, int *k, T *alpha, T *a, int *lda, T *b, int *ldb,
                      T *beta, T *c, int *ldc);
template <typename T>
using Gemv = void (*)(char *trans, int *m, int *n, T *alpha, T *a, int *lda, T *x, int *incx, T *beta, T *y, int *incy);

/// The process's BLAS. Empty until `install`; a dot then uses plain loops.
class Blas {
public:
  static Blas &instance();

  /// Takes the addresses of sgemm, dgemm, sgemv, dgemv (32-bit integers, column-major, arguments by address).
  void install(void *sgemm, void *dgemm, void *sgemv, void *dgemv);

  template <typename T> Gemm<T> gemm() const;
  template <typename T> Gemv<T> gemv() const;
  bool controls_threads() const { return set_threads_ != nullptr; }

  /// Keeps the library from starting threads of its own while at least one of these lives, and restores the user's
  /// setting with the last. OpenBLAS has one setting a process, so the first in saves it and the last out restores it.
  class SingleThreaded {
  public:
    SingleThreaded() { instance().enter(); }
    ~SingleThreaded() { instance().leave(); }
    SingleThreaded(const SingleThreaded &) = delete;
    SingleThreaded &operator=(const SingleThreaded &) = delete;
  };

private:
  void enter();
  void leave();
  void reset_after_fork();
  void find_thread_control(void *function);

  Gemm<float> sgemm_ = nullptr;
  Gemm<double> dgemm_ = nullptr;
  Gemv<float> sgemv_ = nullptr;
  Gemv<double> dgemv_ = nullptr;
  void (*set_threads_)(int) = nullptr;
  int (*get_threads_)() = nullptr;
  std::mutex mutex_;
  int inside_ = 0;
  int saved_threads_ = 0;
};

template <> inline Gemm<float> Blas::gemm<float>() const { return sgemm_; }
template <> inline Gemm<double> Blas::gemm<double>() const { return dgemm_; }
template <> inline Gemv<float> Blas::gemv<float>() const { return sgemv_; }
template <> inline Gemv<double> Blas::gemv<double>() const { return dgemv_; }

} // namespace disc
