// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nccl_library.h"

#include "shared_library.h"

#include <mutex>
#include <optional>

namespace disc::cuda {

namespace {

std::mutex mutex;
std::optional<NcclLibrary> opened; // set once

} // namespace

void NcclLibrary::open(const std::vector<std::string> &names) {
  std::lock_guard lock(mutex);
  if (opened)
    return;
  if (std::optional<SharedLibrary> library = SharedLibrary::open(names)) {
    NcclLibrary found;
#define DISC_NCCL_FIND(result, member, function, parameters)                                                           \
  found.member =                                                                                                       \
      reinterpret_cast<decltype(found.member)>(library->find(#function, "NCCL", "install nvidia-nccl-cu13"));
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
