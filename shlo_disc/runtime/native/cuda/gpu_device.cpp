// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_device.h"

#include "kernels/library_call.h"

#include <cstring>
#include <exception>

namespace disc::cuda {

namespace {

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

/// The memory of a GPU, as an allocator takes it.
class GpuMemory : public MemorySource {
public:
  explicit GpuMemory(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}

  void *allocate(size_t bytes) override { return reinterpret_cast<void *>(gpu_->allocate(bytes)); }
  void release(void *address, size_t) noexcept override { gpu_->release(address_of(address)); }

private:
  std::shared_ptr<Gpu> gpu_;
};

/// What the commands of this thread have failed with first. Those after it do nothing, and read zeros.
thread_local std::exception_ptr failure;

template <typename Body> void guarded(Body body) noexcept {
  if (failure)
    return;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
}

class GpuCommands : public Commands {
public:
  GpuCommands(std::shared_ptr<Gpu> gpu, const std::vector<KernelSpec> &kernels, std::string_view code)
      : gpu_(std::move(gpu)) {
    if (!kernels.empty())
      module_ = std::make_unique<Module>(gpu_, std::string(code));
    for (const KernelSpec &spec : kernels)
      kernels_.push_back({module_->kernel(spec.name, spec.where), static_cast<unsigned>(spec.threads)});
    runtime_.opaque = this;
    runtime_.enqueue = enqueue, runtime_.copy = copy, runtime_.clear = clear, runtime_.read = read;
  }

  void check() const override {
    if (std::exception_ptr found = std::exchange(failure, nullptr))
      std::rethrow_exception(found);
  }

private:
  struct Entry {
    Kernel kernel;
    unsigned threads;
  };

  static const GpuCommands &self(const DiscRuntime *runtime) {
    return *static_cast<const GpuCommands *>(runtime->opaque);
  }

  static void enqueue(const DiscRuntime *runtime, int64_t kernel, const int64_t *args, int64_t words, int64_t blocks,
                      int64_t) {
    if (blocks == 0)
      return;
    guarded([&] {
      const Entry &entry = self(runtime).kernels_.at(static_cast<size_t>(kernel));
      LaunchSizes sizes{{static_cast<unsigned>(blocks), 1, 1}, {entry.threads, 1, 1}, 0};
      self(runtime).gpu_->launch(entry.kernel, sizes, {args, static_cast<size_t>(words)});
    });
  }

  static void copy(const DiscRuntime *runtime, void *to, const void *from, int64_t bytes, int64_t) {
    guarded([&] { self(runtime).gpu_->copy(address_of(to), address_of(from), static_cast<size_t>(bytes)); });
  }

  static void clear(const DiscRuntime *runtime, void *to, int64_t bytes, int64_t) {
    guarded([&] { self(runtime).gpu_->fill(address_of(to), 0, static_cast<size_t>(bytes)); });
  }

  static void read(const DiscRuntime *runtime, const void *from, int64_t bytes, void *to, int64_t) {
    std::memset(to, 0, sizeof(int64_t));
    guarded([&] { self(runtime).gpu_->read(to, address_of(from), static_cast<size_t>(bytes)); });
  }

  std::shared_ptr<Gpu> gpu_;
  std::unique_ptr<Module> module_;
  std::vector<Entry> kernels_;
};

} // namespace

GpuDevice::GpuDevice(std::shared_ptr<Gpu> gpu, int64_t live_limit, int64_t cache_limit)
    : Device(std::make_shared<Allocator>(live_limit, cache_limit, std::make_shared<GpuMemory>(gpu))),
      gpu_(std::move(gpu)) {}

void GpuDevice::write(void *to, const void *from, int64_t bytes) {
  gpu_->write(address_of(to), from, static_cast<size_t>(bytes));
}

void GpuDevice::read(void *to, const void *from, int64_t bytes) {
  gpu_->read(to, address_of(from), static_cast<size_t>(bytes));
}

std::unique_ptr<Commands> GpuDevice::commands(const std::vector<CallSpec> &calls,
                                              const std::vector<KernelSpec> &kernels, std::string_view code) {
  if (!calls.empty())
    bad_artifact("programs for GPUs have no library calls");
  return std::make_unique<GpuCommands>(gpu_, kernels, code);
}

} // namespace disc::cuda
