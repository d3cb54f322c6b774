// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared_library.h"

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

SharedLibrary NeededLibrary::open(const std::vector<std::string> &names) const {
  if (std::optional<SharedLibrary> library = SharedLibrary::open(names))
    return *library;
  throw Error(ErrorKind::device, std::string(programs) + " needs " + name + ", which is not installed: pip install " +
                                     packages);
}

void NeededLibrary::fail_unopened() const {
  throw Error(ErrorKind::device, std::string(programs) + " needs " + name + ", which has not been opened");
}

void *NeededLibrary::find(const SharedLibrary &library, const char *function) const {
  return library.find(function, name, (std::string("install ") + packages).c_str());
}

void check_status(int status, std::span<const char *const> names, const std::string &what) {
  if (status == 0)
    return;
  auto number = static_cast<size_t>(status); // a large one where the status is negative
  const char *name = number < names.size() ? names[number] : nullptr;
  throw Error(ErrorKind::device, "could not " + what + ": " + (name ? name : "error " + std::to_string(status)));
}

std::string shown(const char *what, const CallSpec &spec) {
  return std::string(what) + (spec.where.empty() ? "" : " at " + spec.where);
}

} // namespace disc::cuda
