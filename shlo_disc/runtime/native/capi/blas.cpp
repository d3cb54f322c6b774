// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "errors.h"
#include "kernels/blas.h"
#include "kernels/blas_library.h"

#include <algorithm>
#include <array>
#include <dlfcn.h>

namespace disc::capi {

namespace {

void open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // is never closed: programs hold its functions
  if (library == nullptr)
    throw Failure("OSError", dlerror());
  if (install_blas(library))
    return;
  dlclose(library);
  bad_value(std::string(path) + kNoBlas);
}

} // namespace

} // namespace disc::capi

using namespace disc::capi;

disc_error_t *disc_set_blas(const disc_blas *functions) {
  return guarded([&] {
    if (given(functions, "disc_set_blas: functions").struct_size < sizeof(disc_blas))
      bad_value("disc_set_blas: struct_size is not set");
    std::array all{functions->sgemm, functions->dgemm, functions->sgemv, functions->dgemv};
    if (std::ranges::find(all, nullptr) != all.end())
      bad_value("disc_set_blas: a function is NULL");
    auto address = [&](size_t i) { return reinterpret_cast<void *>(all[i]); };
    disc::Blas::instance().install(address(0), address(1), address(2), address(3));
  });
}

disc_error_t *disc_open_blas(const char *library) {
  return guarded([&] {
    open(&given(library, "disc_open_blas: library"));
  });
}
