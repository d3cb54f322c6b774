// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fft_library.h"

namespace disc::cuda {

namespace {

OpenedOnce<FftLibrary> opened{{"on GPUs, a program with Fourier transforms", "cuFFT",
                               "nvidia-cufft, or nvidia-cufft-cu12 for a driver of CUDA 12"}};

/// The names of cufftResult from 0 on; later ones have their number alone.
constexpr const char *kStatusNames[] = {
    "CUFFT_SUCCESS",        "CUFFT_INVALID_PLAN", "CUFFT_ALLOC_FAILED", "CUFFT_INVALID_TYPE", "CUFFT_INVALID_VALUE",
    "CUFFT_INTERNAL_ERROR", "CUFFT_EXEC_FAILED",  "CUFFT_SETUP_FAILED", "CUFFT_INVALID_SIZE", "CUFFT_UNALIGNED_DATA",
};

} // namespace

void FftLibrary::open(const std::vector<std::string> &names) { opened.open(names); }

const FftLibrary &FftLibrary::instance() { return opened.get(); }

void FftLibrary::take(const NeededLibrary &needed, const SharedLibrary &library) {
#define DISC_FFT_FIND(member, function, parameters)                                                                    \
  member = reinterpret_cast<decltype(member)>(needed.find(library, #function));
  DISC_FFT_FUNCTIONS(DISC_FFT_FIND)
#undef DISC_FFT_FIND
}

void FftLibrary::check(FftStatus status, const std::string &what) const { check_status(status, kStatusNames, what); }

} // namespace disc::cuda
