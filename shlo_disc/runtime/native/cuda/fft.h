// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fourier transforms by cuFFT.
#pragma once

#include "core/memory.h"
#include "fft_library.h"
#include "gpu.h"
#include "kernels/library_call.h"

#include <array>
#include <compare>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace disc::cuda {

/// Transforms of neighbouring axes, as cuFFT plans them. The elements of one are `stride` apart; `sizes` are those of the
/// array along the axes, of which the last is shorter where it holds half a spectrum.
struct FftProblem {
  struct Side {
    DataType type{};
    std::array<int64_t, 3> sizes{};
    int64_t distance = 0; // from one transform to the next

    auto operator<=>(const Side &) const = default;
  };

  int64_t rank = 1;
  std::array<int64_t, 3> lengths{};
  int64_t stride = 1, batch = 1;
  Side source, target;

  auto operator<=>(const FftProblem &) const = default;
};

/// Whether a library function is a transform.
bool is_fft(const CallSpec &spec);

/// Throws Error(artifact) where a call of one cannot be right, and Error(device) where there is no cuFFT.
void check_fft(const CallSpec &spec);

/// cuFFT on one GPU. Plans are kept, those used last, up to a number. Thread-safe.
class Fft {
public:
  /// Workspace comes from `allocator`.
  Fft(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator);
  ~Fft();
  Fft(const Fft &) = delete;
  Fft &operator=(const Fft &) = delete;

  /// Gives the transforms of a call to the GPU's stream. Inverse ones are not divided by the number of elements. Throws
  /// Error(device) and AllocationFailure.
  void run(const Call &call);

private:
  struct Plan;

  Plan &plan_for(const FftProblem &problem, const std::string &what);

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Allocator> allocator_;
  std::mutex mutex_;
  std::list<std::pair<FftProblem, std::unique_ptr<Plan>>> plans_; // the one used last in front
  std::map<FftProblem, decltype(plans_)::iterator> by_problem_;
};

} // namespace disc::cuda
