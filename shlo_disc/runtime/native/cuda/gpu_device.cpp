// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_device.h"

#include "collectives.h"
#include "gpu_clock.h"
#include "gpu_run.h"
#include "host_call.h"
#include "kernels/library_call.h"
#include "product_choice.h"
#include "program/processors.h"
#include "tensor_map.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>

namespace disc::cuda {

namespace {

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

/// The memory of a GPU, as an allocator takes it. Graphs, which have some, give way to it.
class GpuMemory : public MemorySource {
public:
  GpuMemory(std::shared_ptr<Gpu> gpu, std::shared_ptr<Graphs> graphs)
      : gpu_(std::move(gpu)), graphs_(std::move(graphs)) {}

  void *allocate(size_t bytes) override {
    Address address = gpu_->allocate(bytes);
    if (address == 0 && graphs_->clear() > 0)
      address = gpu_->allocate(bytes);
    return reinterpret_cast<void *>(address);
  }

  void release(void *address, size_t) noexcept override { gpu_->release(address_of(address)); }

private:
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Graphs> graphs_;
};

/// What the commands of this thread have failed with first. Those after it do nothing, and read zeros.
thread_local std::exception_ptr failure;

/// What this thread has given since its run began.
thread_local GivenWork given;

template <typename Body> void guarded(Body body) noexcept {
  if (failure)
    return;
  ++given.commands;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
}

/// A library of the device, `Fft` or `Solver`, as a function that call sites are bound to.
template <typename Library> class ByLibrary : public LibraryFunction {
public:
  explicit ByLibrary(Library &library) : library_(library) {}
  void run(const Call &call) const override { library_.run(call); }

private:
  Library &library_;
};

bool waits_for_each_kernel() {
  const char *value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value && std::string_view(value) != "" && std::string_view(value) != "0";
}

class GpuCommands : public Commands {
public:
  GpuCommands(std::shared_ptr<GpuDevice> device, std::shared_ptr<Graphs> graphs, const std::vector<CallSpec> &calls,
              const std::vector<KernelSpec> &kernels, std::string_view code)
      : device_(std::move(device)), gpu_(device_->gpu()), graphs_(std::move(graphs)), calls_(calls) {
    for (const CallSpec &spec : calls_) {
      host_calls_.push_back(spec.custom ? std::make_unique<HostCall>(gpu_, spec) : nullptr);
      library_calls_.emplace_back();
      if (is_fft(spec)) {
        check_fft(spec);
        library_calls_.back() = {spec, std::make_shared<ByLibrary<Fft>>(device_->fft())};
      } else if (is_lapack(spec)) {
        check_lapack(spec);
        library_calls_.back() = {spec, std::make_shared<ByLibrary<Solver>>(device_->solver())};
      } else if (!spec.custom) {
        check_collective(spec);
      }
    }
    if (!kernels.empty())
      module_ = std::make_unique<Module>(gpu_, std::string(code));
    for (const KernelSpec &spec : kernels)
      kernels_.push_back(
          {module_->kernel(spec.name, spec.where), static_cast<unsigned>(spec.threads), spec.product(),
           by_maps(spec, spec.by_maps), by_maps(spec, spec.by_maps_of_words)});
    runtime_.opaque = this;
    runtime_.enqueue = enqueue, runtime_.copy = copy, runtime_.clear = clear, runtime_.read = read;
    runtime_.product = product, runtime_.call = call;
  }
  ~GpuCommands() override { graphs_->forget(this); }

  void run(const SegmentRun &run) const override {
    if (run.runtime != &runtime_) // somebody watches the commands
      return Commands::run(run);
    graphs_->run(this, run, [&] { return give(run); });
  }

protected:
  void check() const override {
    if (std::exception_ptr found = std::exchange(failure, nullptr))
      std::rethrow_exception(found);
  }

private:
  /// Gives the commands of a run one by one.
  GivenWork give(const SegmentRun &run) const {
    given = {};
    Commands::run(run);
    return given;
  }

  template <typename Spec> struct EntryByMaps {
    Kernel kernel;
    Spec spec;
    unsigned shared_bytes, threads;
  };

  struct Entry {
    Kernel kernel;
    unsigned threads;
    std::string product; // what errors call the matrix product that it is of
    std::optional<EntryByMaps<KernelByMaps>> by_maps;
    std::optional<EntryByMaps<KernelByMapsOfWords>> by_maps_of_words;
  };

  template <typename Spec>
  std::optional<EntryByMaps<Spec>> by_maps(const KernelSpec &other, const std::optional<Spec> &spec) const {
    if (!spec)
      return std::nullopt;
    auto bytes = static_cast<unsigned>(spec->shared_bytes);
    Kernel kernel = module_->kernel(spec->name, other.where, static_cast<int>(bytes));
    return EntryByMaps<Spec>{kernel, *spec, bytes, static_cast<unsigned>(spec->threads)};
  }

  static const GpuCommands &self(const DiscRuntime *runtime) {
    return *static_cast<const GpuCommands *>(runtime->opaque);
  }

  static void enqueue(const DiscRuntime *runtime, int64_t kernel, const int64_t *args, int64_t words, int64_t blocks,
                      int64_t) {
    if (blocks == 0)
      return;
    guarded([&] {
      const GpuCommands &commands = self(runtime);
      const Entry &entry = commands.entry(kernel);
      std::span<const int64_t> given(args, static_cast<size_t>(words));
      if (!commands.launch_by_maps(entry, given, blocks))
        commands.launch(entry, given, blocks);
    });
  }

  static void product(const DiscRuntime *runtime, const DiscProduct *product, int64_t) {
    if (product->blocks == 0)
      return;
    guarded([&] {
      const GpuCommands &commands = self(runtime);
      const Entry &entry = commands.entry(product->kernel);
      switch (commands.device_->blas().multiply(*product, entry.product, takes_maps(entry, *product))) {
      case Multiplied::nothing:
        chosen_way = "kernel";
        return commands.multiply(entry, *product);
      case Multiplied::product:
        chosen_way = "cuBLASLt, and a kernel behind it";
        ++given.commands;
        return commands.launch(commands.entry(product->epilogue),
                               {product->epilogue_args, static_cast<size_t>(product->epilogue_words)},
                               product->epilogue_blocks);
      case Multiplied::all:
        chosen_way = "cuBLASLt";
        return;
      }
    });
  }

  /// Those of the kernel of a product, and of what follows it.
  static std::span<const int64_t> parameters_of(const DiscProduct &product) {
    if (product.args)
      return {product.args, static_cast<size_t>(product.words)};
    return {reinterpret_cast<const int64_t *>(&product),
            reinterpret_cast<const int64_t *>(product.batch + product.batch_rank)};
  }

  static void copy(const DiscRuntime *runtime, void *to, const void *from, int64_t bytes, int64_t) {
    guarded([&] { self(runtime).gpu_->copy(address_of(to), address_of(from), static_cast<size_t>(bytes)); });
  }

  static void clear(const DiscRuntime *runtime, void *to, int64_t bytes, int64_t) {
    guarded([&] { self(runtime).gpu_->fill(address_of(to), 0, static_cast<size_t>(bytes)); });
  }

  static void read(const DiscRuntime *runtime, const void *from, int64_t bytes, void *to, int64_t) {
    std::memset(to, 0, sizeof(int64_t));
    given.asks = true;
    guarded([&] { read_in_run(*self(runtime).gpu_, to, address_of(from), static_cast<size_t>(bytes)); });
  }

  static void call(const DiscRuntime *runtime, int64_t index, const int64_t *words, int64_t) {
    given.asks = true; // what it does depends on the participant, which no graph knows, is the host's, or takes memory
    guarded([&] {
      const GpuCommands &commands = self(runtime);
      auto number = static_cast<size_t>(index);
      if (const std::unique_ptr<HostCall> &call = commands.host_calls_.at(number))
        return call->run(words, index);
      if (const std::optional<BoundCall> &bound = commands.library_calls_.at(number))
        return bound->run(default_device()->pool, words, index, nullptr);
      run_collective(*commands.gpu_, commands.calls_.at(number), index, words);
    });
  }

  const Entry &entry(int64_t number) const { return kernels_.at(static_cast<size_t>(number)); }

  void launch(const Entry &entry, std::span<const int64_t> words, int64_t blocks) const {
    gpu_->launch(entry.kernel, {{static_cast<unsigned>(blocks), 1, 1}, {entry.threads, 1, 1}, 0}, words);
  }

  /// Whether there is a kernel for the launch that is told tensor maps, and its operands can be described by them.
  bool launch_by_maps(const Entry &entry, std::span<const int64_t> words, int64_t blocks) const {
    if (!entry.by_maps_of_words)
      return false;
    const auto &[kernel, spec, shared_bytes, threads] = *entry.by_maps_of_words;
    std::optional<std::vector<TensorMap>> maps;
    gpu_->within([&] { maps = tensor_maps_of(words, spec); });
    if (!maps)
      return false;
    if (spec.is_persistent)
      blocks = std::min<int64_t>(blocks, gpu_->facts().multiprocessors);
    chosen_way = "kernel by tensor maps";
    gpu_->launch(kernel, {{static_cast<unsigned>(blocks), 1, 1}, {threads, 1, 1}, shared_bytes}, words, *maps);
    return true;
  }

  /// By a kernel of the program's.
  void multiply(const Entry &entry, const DiscProduct &product) const {
    if (!multiply_by_maps(entry, product, parameters_of(product)))
      launch(entry, parameters_of(product), product.blocks);
  }

  /// Whether a kernel that is told tensor maps may do it: blocks of such a kernel have all of the depth.
  static bool takes_maps(const Entry &entry, const DiscProduct &product) {
    return entry.by_maps && parts_of(product) == 0;
  }

  /// Whether there is a kernel for the product that is told tensor maps, and its sides can be described by them. Its
  /// blocks work on tile after tile, so no more are started than can be at work.
  bool multiply_by_maps(const Entry &entry, const DiscProduct &product, std::span<const int64_t> words) const {
    if (!takes_maps(entry, product))
      return false;
    const auto &[kernel, spec, shared_bytes, threads] = *entry.by_maps;
    std::optional<std::array<TensorMap, 2>> maps;
    gpu_->within([&] { maps = tensor_maps_of(product, spec); });
    if (!maps)
      return false;
    int64_t blocks = std::min<int64_t>(product.blocks, gpu_->facts().multiprocessors);
    chosen_way = "kernel by tensor maps";
    gpu_->launch(kernel, {{static_cast<unsigned>(blocks), 1, 1}, {threads, 1, 1}, shared_bytes}, words, *maps);
    return true;
  }

  std::shared_ptr<GpuDevice> device_;
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Graphs> graphs_;
  std::unique_ptr<Module> module_;
  std::vector<Entry> kernels_;
  std::vector<CallSpec> calls_;
  std::vector<std::unique_ptr<HostCall>> host_calls_;   // by call; null for others
  std::vector<std::optional<BoundCall>> library_calls_; // by call
};

} // namespace

GpuDevice::GpuDevice(std::shared_ptr<Gpu> gpu, int64_t live_limit, int64_t cache_limit,
                     std::vector<std::string> blas_names, bool may_use_tf32, std::optional<bool> fuses_products,
                     int64_t graphs)
    : GpuDevice(gpu, live_limit, cache_limit, std::move(blas_names), may_use_tf32, fuses_products,
                std::make_shared<Graphs>(gpu, waits_for_each_kernel() ? 0 : graphs)) {}

GpuDevice::GpuDevice(std::shared_ptr<Gpu> gpu, int64_t live_limit, int64_t cache_limit,
                     std::vector<std::string> blas_names, bool may_use_tf32, std::optional<bool> fuses_products,
                     std::shared_ptr<Graphs> graphs)
    : Device(std::make_shared<Allocator>(live_limit, cache_limit, std::make_shared<GpuMemory>(gpu, graphs))),
      gpu_(std::move(gpu)), blas_(gpu_, allocator, std::move(blas_names), may_use_tf32, fuses_products),
      fft_(gpu_, allocator), solver_(gpu_, allocator), graphs_(std::move(graphs)) {}

void GpuDevice::write(void *to, const void *from, int64_t bytes) {
  gpu_->write(address_of(to), from, static_cast<size_t>(bytes));
}

void GpuDevice::read(void *to, const void *from, int64_t bytes) {
  gpu_->read(to, address_of(from), static_cast<size_t>(bytes));
}

std::optional<int32_t> GpuDevice::owner_of(const void *address) { return gpu_->owner_of(address_of(address)); }

std::unique_ptr<CommandClock> GpuDevice::clock(const DiscRuntime &runtime) {
  return std::make_unique<GpuClock>(gpu_, runtime);
}

void GpuDevice::copy_rows(void *to, const void *from, const Rows &rows) {
  gpu_->copy_rows(address_of(to), address_of(from), rows);
}

int64_t GpuDevice::trim() {
  graphs_->clear();
  return Device::trim();
}

std::unique_ptr<Commands> GpuDevice::commands(const std::vector<CallSpec> &calls,
                                              const std::vector<KernelSpec> &kernels, std::string_view code) {
  auto device = std::static_pointer_cast<GpuDevice>(shared_from_this());
  return std::make_unique<GpuCommands>(std::move(device), graphs_, calls, kernels, code);
}

} // namespace disc::cuda
