// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of a program on several devices at a time, each on arguments of its own. Knows no Python objects.
#pragma once

#include "program/executable.h"

#include <memory>
#include <vector>

namespace disc {

/// The call, by participant.
struct ShardedRun {
  std::vector<std::shared_ptr<Executable>> cores; // the program on each device; processors share one
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<std::vector<void *>> buffers; // the arguments' addresses
  std::vector<bool> waits;                  // for the end of the work: the arguments are others'
};

/// Runs all participants, and gives the results of each. Throws what the first failure is.
std::vector<Results> run_sharded(ShardedRun run);

} // namespace disc
