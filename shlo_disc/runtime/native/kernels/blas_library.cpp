// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas_library.h"

#include "blas.h"
#include "lapack.h"

#include <algorithm>
#include <array>
#include <dlfcn.h>

namespace disc {

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

} // namespace

bool install_blas(void *library) { return install(library, "scipy_") || install(library, ""); }

} // namespace disc
