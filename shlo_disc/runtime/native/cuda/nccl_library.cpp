// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nccl_library.h"

#include <dlfcn.h>
#include <mutex>
#include <optional>

namespace disc::cuda {

namespace {

std::mutex mutex;
std::optional<NcclLibrary> opened; // set once

/// The address of a function of the library. Throws Error(device) where an old one lacks it.
void *find(void *library, const std::string &name, const char *function) {
  if (void *address = dlsym(library, function))
    return address;
  throw Error(ErrorKind::device,
              "the NCCL at " + name + " is too old: it has no " + function + "; install nvidia-nccl-cu13");
}

} // namespace

void NcclLibrary::open(const std::vector<std::string> &names) {
  std::lock_guard lock(mutex);
  if (opened)
    return;
  for (const std::string &name : names) {
    void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    NcclLibrary found;
#define DISC_NCCL_FIND(result, member, function, parameters)                                                           \
  found.member = reinterpret_cast<decltype(found.member)>(find(library, name, #function));
    DISC_NCCL_FUNCTIONS(DISC_NCCL_FIND)
#undef DISC_NCCL_FIND
    opened = found;
    return;
  }
  throw Error(ErrorKind::device,
              "a program of several GPUs needs NCCL, which is not installed: pip install nvidia-nccl-cu13");
}

const NcclLibrary &NcclLibrary::instance() {
  std::lock_guard lock(mutex);
  if (!opened)
    throw Error(ErrorKind::device, "a program of several GPUs needs NCCL, which has not been opened");
  return *opened;
}

void NcclLibrary::check(NcclStatus status, const std::string &what) const {
  if (status == kNcclSuccess)
    return;
  const char *text = error_string(status);
  throw Error(ErrorKind::device, "could not " + what + ": NCCL: " + (text ? text : "error " + std::to_string(status)));
}

} // namespace disc::cuda
