// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of functions that users registered, which are the host's, from programs for a GPU.
#pragma once

#include "gpu.h"
#include "kernels/library_call.h"

#include <memory>

namespace disc::cuda {

/// A call site whose operands are brought to the host, and whose results are brought back: the work before it is waited
/// for. Throws Error(artifact) when the function is not registered in this process.
class HostCall {
public:
  HostCall(std::shared_ptr<const Gpu> gpu, const CallSpec &spec);

  /// `words` as in `DiscRuntime::call`; `site`: the number of the call. Throws Error(custom_call) when the function
  /// reports a failure, Error(device), and AllocationFailure.
  void run(const int64_t *words, int64_t site) const;

private:
  BoundCall call_;
};

} // namespace disc::cuda
