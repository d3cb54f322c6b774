// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A GPU as a device of programs.
#pragma once

#include "blas.h"
#include "core/device.h"
#include "fft.h"
#include "gpu.h"
#include "graphs.h"
#include "solver.h"

namespace disc::cuda {

/// Keeps freed blocks for later work: they are released to the driver when it has no more memory otherwise.
class GpuDevice : public disc::Device {
public:
  /// `live_limit`, `cache_limit`: bytes, as `Allocator` has them. `blas_names` to `fuses_products`: as `Blas` has them.
  /// `graphs`: the most CUDA graphs that are kept, 0 for none; there are none either where the driver is told to wait
  /// for each kernel (CUDA_LAUNCH_BLOCKING).
  GpuDevice(std::shared_ptr<Gpu> gpu, int64_t live_limit, int64_t cache_limit, std::vector<std::string> blas_names,
            bool may_use_tf32, std::optional<bool> fuses_products, int64_t graphs);

  bool is_host() const override { return false; }
  DLDevice dlpack() const override { return {kDLCUDA, gpu_->ordinal()}; }
  void *stream() const override { return gpu_->stream(); }
  void wait_in_stream(void *stream) override { gpu_->wait_in_stream(static_cast<StreamHandle>(stream)); }
  void wait_for_all() override { gpu_->wait_for_all(); }
  std::optional<int32_t> owner_of(const void *address) override;
  std::unique_ptr<CommandClock> clock(const DiscRuntime &runtime) override;
  void copy_rows(void *to, const void *from, const Rows &rows) override;
  int64_t trim() override;
  std::string take_notice() override { return graphs_->take_notice(); }
  std::string name() const override { return "GPU " + std::to_string(gpu_->ordinal()); }
  void write(void *to, const void *from, int64_t bytes) override;
  void read(void *to, const void *from, int64_t bytes) override;
  std::shared_ptr<const disc::Event> record() override { return gpu_->record(); }
  std::unique_ptr<Commands> commands(const std::vector<CallSpec> &calls, const std::vector<KernelSpec> &kernels,
                                     std::string_view code) override;

  const std::shared_ptr<Gpu> &gpu() const { return gpu_; }
  LaunchCounts launch_counts() const { return graphs_->counts(); }

  /// What multiplies matrices on it.
  Blas &blas() { return blas_; }

  /// What computes Fourier transforms on it.
  Fft &fft() { return fft_; }

  /// What computes linear algebra on it.
  Solver &solver() { return solver_; }

private:
  GpuDevice(std::shared_ptr<Gpu> gpu, int64_t live_limit, int64_t cache_limit, std::vector<std::string> blas_names,
            bool may_use_tf32, std::optional<bool> fuses_products, std::shared_ptr<Graphs> graphs);

  std::shared_ptr<Gpu> gpu_;
  Blas blas_;
  Fft fft_;
  Solver solver_;
  std::shared_ptr<Graphs> graphs_;
};

} // namespace disc::cuda
