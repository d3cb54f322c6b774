// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A GPU as a device of programs.
#pragma once

#include "blas.h"
#include "core/device.h"
#include "gpu.h"

namespace disc::cuda {

/// Keeps freed blocks for later work: they are given back to the driver when it has no more memory otherwise.
class GpuDevice : public disc::Device {
public:
  /// `live_limit`, `cache_limit`: bytes, as `Allocator` has them. `blas_names`, `may_use_tf32`: as `Blas` has them.
  GpuDevice(std::shared_ptr<Gpu> gpu, int64_t live_limit, int64_t cache_limit, std::vector<std::string> blas_names,
            bool may_use_tf32);

  bool is_host() const override { return false; }
  DLDevice dlpack() const override { return {kDLCUDA, gpu_->ordinal()}; }
  void *stream() const override { return gpu_->stream(); }
  void wait_for_all() override { gpu_->wait_for_all(); }
  std::string name() const override { return "GPU " + std::to_string(gpu_->ordinal()); }
  void write(void *to, const void *from, int64_t bytes) override;
  void read(void *to, const void *from, int64_t bytes) override;
  std::shared_ptr<const disc::Event> record() override { return gpu_->record(); }
  std::unique_ptr<Commands> commands(const std::vector<CallSpec> &calls, const std::vector<KernelSpec> &kernels,
                                     std::string_view code) override;

  const std::shared_ptr<Gpu> &gpu() const { return gpu_; }

  /// What multiplies matrices on it.
  Blas &blas() { return blas_; }

private:
  std::shared_ptr<Gpu> gpu_;
  Blas blas_;
};

} // namespace disc::cuda
