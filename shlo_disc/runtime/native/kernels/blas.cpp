// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string>

namespace disc {

Blas &Blas::instance() {
  static Blas *blas = [] {
    // A dot on another thread must not leave the child of a fork with a locked mutex and one thread for good.
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().reset_after_fork(); });
    return new Blas; // worker threads may outlive static destructors
  }();
  return *blas;
}

void Blas::reset_after_fork() {
  bool restore = inside_ > 0 && saved_threads_ != 1;
  inside_ = 0;
  mutex_.unlock();
  if (restore)
    set_threads_(saved_threads_);
}

void Blas::install(void *sgemm, void *dgemm, void *sgemv, void *dgemv) {
  std::lock_guard lock(mutex_);
  sgemm_ = reinterpret_cast<Gemm<float>>(sgemm);
  dgemm_ = reinterpret_cast<Gemm<double>>(dgemm);
  sgemv_ = reinterpret_cast<Gemv<float>>(sgemv);
  dgemv_ = reinterpret_cast<Gemv<double>>(dgemv);
  find_thread_control(sgemm);
}

/// SciPy loads its OpenBLAS privately, so the control functions are looked up from the library that holds `function`,
/// among that library's own dependencies. SciPy's wheels prefix OpenBLAS's names.
void Blas::find_thread_control(void *function) {
  Dl_info info;
  if (!dladdr(function, &info) || !info.dli_fname)
    return;
  void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!library)
    return;
  for (const char *prefix : {"scipy_", ""}) {
    std::string name = std::string(prefix) + "openblas_";
    auto set = reinterpret_cast<void (*)(int)>(dlsym(library, (name + "set_num_threads").c_str()));
    auto get = reinterpret_cast<int (*)()>(dlsym(library, (name + "get_num_threads").c_str()));
    if (set && get && !set_threads_) {
      set_threads_ = set;
      get_threads_ = get;
    }
  }
  dlclose(library);
}

void Blas::enter() {
  if (!set_threads_)
    return;
  std::lock_guard lock(mutex_);
  if (inside_++ > 0)
    return;
  saved_threads_ = get_threads_();
  if (saved_threads_ != 1)
    set_threads_(1);
}

void Blas::leave() {
  if (!set_threads_)
    return;
  std::lock_guard lock(mutex_);
  if (--inside_ == 0 && saved_threads_ != 1)
    set_threads_(saved_threads_);
}

} // namespace disc
