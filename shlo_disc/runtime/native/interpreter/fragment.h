// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps with the values that they work on: those of a program, or those of the body of an op.
#pragma once

#include "steps.h"

#include <span>

namespace disc::interpreter {

/// Where the elements of a value are while steps run.
struct Place {
  enum Kind : uint8_t { argument, constant, memory };
  Kind kind = memory;
  int64_t number = 0;             // of an argument; or the offset in the memory
  const void *address = nullptr; // of a constant
};

struct Fragment {
  Steps steps;
  std::vector<Place> places; // by value
  std::vector<uint32_t> results;
  std::vector<int64_t> result_bytes;
  int64_t memory_bytes = 0;

  /// Returns the work that was done. Throws Unsupported.
  int64_t run(Inputs arguments, Outputs into, void *memory, int64_t most_work) const;
};

/// A value whose memory is to be found: from the step in which it is written to the last one that reads it.
struct Lifetime {
  uint32_t value;
  int64_t bytes;
  int64_t begin, end;
};

/// Finds offsets, multiples of 64, so that values which live at a time do not overlap: the first place that fits, in the
/// order of their beginnings. Returns the bytes in all.
int64_t place_values(std::vector<Lifetime> lifetimes, std::vector<Place> &places);

} // namespace disc::interpreter
