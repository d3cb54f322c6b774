// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nccl_library.h"

namespace disc::cuda {

namespace {

OpenedOnce<NcclLibrary> opened{{"a program of several GPUs", "NCCL", "nvidia-nccl-cu13"}};

} // namespace

void NcclLibrary::open(const std::vector<std::string> &names) { opened.open(names); }

const NcclLibrary &NcclLibrary::instance() { return opened.get(); }

void NcclLibrary::take(const NeededLibrary &needed, const SharedLibrary &library) {
#define DISC_NCCL_FIND(result, member, function, parameters)                                                           \
  member = reinterpret_cast<decltype(member)>(needed.find(library, #function));
  DISC_NCCL_FUNCTIONS(DISC_NCCL_FIND)
#undef DISC_NCCL_FIND
}

void NcclLibrary::check(NcclStatus status, const std::string &what) const {
  if (status == kNcclSuccess)
    return;
  const char *text = error_string(status);
  throw Error(ErrorKind::device, "could not " + what + ": NCCL: " + (text ? text : "error " + std::to_string(status)));
}

} // namespace disc::cuda
