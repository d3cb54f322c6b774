// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fft_library.h"

#include "shared_library.h"

#include <iterator>
#include <mutex>
#include <optional>

namespace disc::cuda {

namespace {

std::mutex mutex;
std::optional<FftLibrary> opened; // set once

/// The names of cufftResult from 0 on; later ones have their number alone.
constexpr const char *kStatusNames[] = {
    "CUFFT_SUCCESS",        "CUFFT_INVALID_PLAN", "CUFFT_ALLOC_FAILED", "CUFFT_INVALID_TYPE", "CUFFT_INVALID_VALUE",
    "CUFFT_INTERNAL_ERROR", "CUFFT_EXEC_FAILED",  "CUFFT_SETUP_FAILED", "CUFFT_INVALID_SIZE", "CUFFT_UNALIGNED_DATA",
};

} // namespace

void FftLibrary::open(const std::vector<std::string> &names) {
  std::lock_guard lock(mutex);
  if (opened)
    return;
  if (std::optional<SharedLibrary> library = SharedLibrary::open(names)) {
    FftLibrary found;
#define DISC_FFT_FIND(member, function, parameters)                                                                    \
  found.member =                                                                                                       \
      reinterpret_cast<decltype(found.member)>(library->find(#function, "cuFFT", "install nvidia-cufft"));
    DISC_FFT_FUNCTIONS(DISC_FFT_FIND)
#undef DISC_FFT_FIND
    opened = found;
    return;
  }
  throw Error(ErrorKind::device,
              "a program with Fourier transforms needs cuFFT on GPUs, which is not installed: pip install nvidia-cufft, "
              "or nvidia-cufft-cu12 for a driver of CUDA 12");
}

const FftLibrary &FftLibrary::instance() {
  std::lock_guard lock(mutex);
  if (!opened)
    throw Error(ErrorKind::device, "a program with Fourier transforms needs cuFFT, which has not been opened");
  return *opened;
}

void FftLibrary::check(FftStatus status, const std::string &what) const {
  if (status == 0)
    return;
  bool is_named = status > 0 && status < static_cast<int>(std::size(kStatusNames));
  throw Error(ErrorKind::device,
              "could not " + what + ": " + (is_named ? kStatusNames[status] : "error " + std::to_string(status)));
}

} // namespace disc::cuda
