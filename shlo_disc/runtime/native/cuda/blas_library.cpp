// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas_library.h"

#include <dlfcn.h>

namespace disc::cuda {

namespace {

/// The address of a function of the library. Throws Error(device) where an old one lacks it.
void *find(void *library, const std::string &name, const char *function) {
  if (void *address = dlsym(library, function))
    return address;
  throw Error(ErrorKind::device, "the cuBLASLt at " + name + " is too old: it has no " + function +
                                     "; use a newer one, or Client.of_gpu(uses_libraries=False)");
}

} // namespace

std::optional<BlasLibrary> BlasLibrary::open(const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    BlasLibrary found;
#define DISC_BLAS_FIND(result, member, function, parameters)                                                           \
  found.member = reinterpret_cast<decltype(found.member)>(find(library, name, #function));
    DISC_BLAS_FUNCTIONS(DISC_BLAS_FIND)
#undef DISC_BLAS_FIND
    return found;
  }
  return std::nullopt;
}

void BlasLibrary::check(BlasStatus status, const std::string &what) const {
  if (status == kBlasSuccess)
    return;
  const char *name = status_name(status);
  throw Error(ErrorKind::device, "could not " + what + ": " + (name ? name : "error " + std::to_string(status)));
}

} // namespace disc::cuda
