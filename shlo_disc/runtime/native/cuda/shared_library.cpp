// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared_library.h"

#include "core/error.h"

#include <dlfcn.h>

namespace disc::cuda {

std::optional<SharedLibrary> SharedLibrary::open(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary{handle, name};
  return std::nullopt;
}

void *SharedLibrary::find(const char *function, const char *what, const char *advice) const {
  if (void *address = dlsym(handle, function))
    return address;
  throw Error(ErrorKind::device, "the " + std::string(what) + " at " + name + " is too old: it has no " + function +
                                     "; " + advice);
}

} // namespace disc::cuda
