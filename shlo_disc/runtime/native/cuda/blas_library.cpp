// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas_library.h"

#include "shared_library.h"

namespace disc::cuda {

std::optional<BlasLibrary> BlasLibrary::open(const std::vector<std::string> &names) {
  std::optional<SharedLibrary> library = SharedLibrary::open(names);
  if (!library)
    return std::nullopt;
  BlasLibrary found;
#define DISC_BLAS_FIND(result, member, function, parameters)                                                           \
  found.member = reinterpret_cast<decltype(found.member)>(                                                             \
      library->find(#function, "cuBLASLt", "use a newer one, or Client.of_gpu(uses_libraries=False)"));
  DISC_BLAS_FUNCTIONS(DISC_BLAS_FIND)
#undef DISC_BLAS_FIND
  return found;
}

void BlasLibrary::check(BlasStatus status, const std::string &what) const {
  if (status == kBlasSuccess)
    return;
  const char *name = status_name(status);
  throw Error(ErrorKind::device, "could not " + what + ": " + (name ? name : "error " + std::to_string(status)));
}

} // namespace disc::cuda
