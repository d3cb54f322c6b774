// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "errors.h"
#include "kernels/blas.h"
#include "kernels/lapack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <dlfcn.h>

namespace disc::capi {

namespace {

void *function_of(void *library, const char *prefix, const std::string &name) {
  return dlsym(library, (prefix + name + "_").c_str());
}

/// LAPACK's functions, where the library has all of them.
void install_lapack(void *library, const char *prefix) {
  std::unordered_map<std::string, void *> functions;
  for (const std::string &name : Lapack::names())
    functions[name] = function_of(library, prefix, name);
  if (std::ranges::all_of(functions, [](const auto &entry) { return entry.second != nullptr; }))
    Lapack::instance().install(std::move(functions));
}

/// Whether the library has the four functions by names with this prefix, which are then installed.
bool install(void *library, const char *prefix) {
  std::array<void *, 4> functions;
  std::ranges::transform(std::array{"sgemm", "dgemm", "sgemv", "dgemv"}, functions.begin(),
                         [&](const char *name) { return function_of(library, prefix, name); });
  if (std::ranges::find(functions, nullptr) != functions.end())
    return false;
  Blas::instance().install(functions[0], functions[1], functions[2], functions[3]);
  install_lapack(library, prefix);
  return true;
}

void open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); // is never closed: programs hold its functions
  if (library == nullptr)
    throw Failure("OSError", dlerror());
  if (install(library, "scipy_") || install(library, ""))
    return;
  dlclose(library);
  bad_value(std::string(path) + " has no BLAS of 32-bit integers: sgemm_, dgemm_, sgemv_ and dgemv_, or the same names "
                                "behind scipy_");
}

} // namespace

} // namespace disc::capi

using namespace disc::capi;

disc_error_t *disc_set_blas(const disc_blas *functions) {
  return guarded([&] {
    if (functions == nullptr || functions->struct_size < sizeof(disc_blas))
      bad_value("disc_set_blas: struct_size is not set");
    std::array given{functions->sgemm, functions->dgemm, functions->sgemv, functions->dgemv};
    if (std::ranges::find(given, nullptr) != given.end())
      bad_value("disc_set_blas: a function is NULL");
    auto address = [&](size_t i) { return reinterpret_cast<void *>(given[i]); };
    disc::Blas::instance().install(address(0), address(1), address(2), address(3));
  });
}

disc_error_t *disc_open_blas(const char *library) {
  return guarded([&] {
    if (library == nullptr)
      bad_value("disc_open_blas: the library is NULL");
    open(library);
  });
}
