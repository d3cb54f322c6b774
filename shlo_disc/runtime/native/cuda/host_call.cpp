// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host_call.h"

#include "core/dtype.h"
#include "core/error.h"
#include "gpu_run.h"
#include "program/processors.h"

#include <vector>

namespace disc::cuda {

namespace {

int64_t bytes_of(const CallTensor &tensor, const CallTensorSpec &spec) {
  if (spec.dtype == "c64" || spec.dtype == "c128")
    return tensor.elements() * (spec.dtype == "c64" ? 8 : 16);
  const DTypeInfo *dtype = dtype_named(spec.dtype);
  if (!dtype)
    bad_artifact("header: a custom call has elements of the type '" + spec.dtype + "'");
  return tensor.elements() * static_cast<int64_t>(dtype->size);
}

/// The function with arrays of the host's in place of the GPU's.
class OnHost : public LibraryFunction {
public:
  OnHost(std::shared_ptr<const Gpu> gpu, std::shared_ptr<const LibraryFunction> function)
      : gpu_(std::move(gpu)), function_(std::move(function)) {}

  void run(const Call &call) const override {
    size_t operands = call.spec.operands.size(), results = call.spec.results.size() - 1; // the last is the workspace
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<CallTensor> tensors;
    auto add = [&](const CallTensor &there, int64_t bytes) {
      blocks.push_back(std::make_unique<Block>(default_device()->allocator, bytes, BlockKind::argument));
      tensors.push_back({blocks.back()->address(), there.rank, there.dims});
    };
    for (size_t i = 0; i < operands; ++i) {
      add(call.operands[i], bytes_of(call.operands[i], call.spec.operands[i]));
      if (int64_t bytes = blocks.back()->bytes())
        read_in_run(*gpu_, blocks.back()->address(), address_of(call.operands[i]), static_cast<size_t>(bytes));
    }
    for (size_t i = 0; i < results; ++i)
      add(call.results[i], bytes_of(call.results[i], call.spec.results[i]));
    add(call.workspace(), call.workspace().elements());
    function_->run({call.spec, call.pool, tensors.data(), tensors.data() + operands, call.site, call.communicator});
    if (has_failed())
      return;
    for (size_t i = 0; i < results; ++i)
      if (const Block &made = *blocks[operands + i]; made.bytes())
        gpu_->write(address_of(call.results[i]), made.address(), static_cast<size_t>(made.bytes()));
  }

private:
  static Address address_of(const CallTensor &tensor) { return reinterpret_cast<Address>(tensor.data); }

  std::shared_ptr<const Gpu> gpu_;
  std::shared_ptr<const LibraryFunction> function_;
};

} // namespace

HostCall::HostCall(std::shared_ptr<const Gpu> gpu, const CallSpec &spec)
    : call_{spec, std::make_shared<OnHost>(std::move(gpu), bind_custom_call(spec))} {}

void HostCall::run(const int64_t *words, int64_t site) const {
  call_.run(default_device()->pool, words, site, nullptr);
  throw_failure();
}

} // namespace disc::cuda
