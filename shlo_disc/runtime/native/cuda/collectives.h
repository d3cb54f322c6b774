// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives among several GPUs, by NCCL.
#pragma once

#include "gpu.h"
#include "kernels/library_call.h"

#include <cstdint>
#include <vector>

namespace disc::cuda {

/// Throws Error(artifact) when a call is no collective as this runtime has them.
void check_collective(const CallSpec &spec);

/// The participants that communicate in a call, by group.
std::vector<std::vector<int64_t>> groups_of(const CallSpec &spec);

/// Gives a collective of this thread's participant to its GPU, once all members have come to it. `words` as in
/// `DiscRuntime::call`; `site`: the number of the call. Throws Error(device), and Error(custom_call) when members wait in
/// vain.
void run_collective(const Gpu &gpu, const CallSpec &spec, int64_t site, const int64_t *words);

} // namespace disc::cuda
