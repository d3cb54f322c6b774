// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program whose sizes are all known, run op by op by kernels that are ready: what serves a program before it is
// compiled. Reading one takes microseconds for each op.
#pragma once

#include "fragment.h"

#include <string>

namespace disc::interpreter {

/// Immutable: any number of threads may run it.
class Program {
public:
  /// Reads a portable artifact. Throws bytecode::Unreadable and Unsupported: for an op that is not supported where it runs in
  /// any case, but not in a branch or the body of a loop, which may never run; and once the ops that run in any case have
  /// more work than `most_work`.
  static std::shared_ptr<const Program> read(std::string_view bytes, int64_t most_work);

  /// Runs the program. memory: `memory_bytes()` of the caller's, aligned to 64. Returns the work that was done, which is
  /// roughly nanoseconds. Throws Unsupported where an op is reached that is not supported, and before the work exceeds
  /// `most_work`: what has been written to results is without meaning then, and nothing else has changed.
  int64_t run(Inputs arguments, Outputs results, void *memory, int64_t most_work) const {
    return fragment_.run(arguments, results, memory, most_work);
  }

  int64_t memory_bytes() const { return fragment_.memory_bytes; }

  std::string name;
  std::vector<Type> arguments, results;
  std::vector<bool> donated; // by argument
  int64_t constant_bytes = 0;
  size_t op_count = 0;
  bool may_stop = false;  // a run may throw: it has loops, or ops that are not supported

private:
  friend class ProgramReader;

  Fragment fragment_;
  std::vector<std::unique_ptr<char[]>> constants_;
};

} // namespace disc::interpreter
