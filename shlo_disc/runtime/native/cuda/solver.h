// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Linear algebra by cuSOLVER and cuBLAS.
#pragma once

#include "core/memory.h"
#include "gpu.h"
#include "kernels/library_call.h"
#include "solver_library.h"

#include <memory>
#include <mutex>
#include <vector>

namespace disc::cuda {

/// Whether a library function is one of LAPACK.
bool is_lapack(const CallSpec &spec);

/// Throws Error(artifact) where a call of one cannot be right, or GPUs have none, and Error(device) where there is no
/// cuSOLVER.
void check_lapack(const CallSpec &spec);

/// cuSOLVER and cuBLAS on one GPU. Thread-safe.
class Solver {
public:
  /// Workspace comes from `allocator`.
  Solver(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator);
  ~Solver();
  Solver(const Solver &) = delete;
  Solver &operator=(const Solver &) = delete;

  /// Gives the work of a call to the GPU's stream. Throws Error(device) and AllocationFailure.
  void run(const Call &call);

private:
  struct Handles;

  /// Memory of the host that functions were given, and the end of their work, if it is known.
  struct HostMemory {
    std::vector<std::unique_ptr<char[]>> parts;
    std::shared_ptr<Event> end;
  };

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Allocator> allocator_;
  std::mutex mutex_;
  std::unique_ptr<Handles> handles_; // made for the first call
  std::vector<HostMemory> kept_;
};

} // namespace disc::cuda
