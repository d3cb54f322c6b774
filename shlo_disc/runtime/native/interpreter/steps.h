// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a program that was read consists of.
#pragma once

#include "op.h"

#include <memory>
#include <string>
#include <utility>

namespace disc::interpreter {

/// One run: where values are, and the work that may still be done.
struct Run {
  void *const *addresses; // by value
  int64_t work_left;

  /// Throws Unsupported where it is too much.
  void count(int64_t work) {
    if ((work_left -= work) < 0)
      throw Unsupported("the program has more work than is interpreted");
  }
};

struct Step {
  virtual ~Step() = default;
  virtual void run(Run &run) const = 0;
};

using Steps = std::vector<std::unique_ptr<const Step>>;

inline void run_all(const Steps &steps, Run &run) {
  for (const std::unique_ptr<const Step> &step : steps)
    step->run(run);
}

/// Copies a value's elements.
struct Copy {
  uint32_t from, to;
  int64_t bytes;

  void run(const Run &run) const;
};

/// One op. Values are numbers.
struct KernelStep : Step {
  Kernel kernel;
  std::vector<uint32_t> inputs, outputs; // few enough for the stack
  int64_t work = 0;

  void run(Run &run) const override;
};

/// An op that is compiled only.
struct UnsupportedStep : Step {
  explicit UnsupportedStep(std::string reason) : reason(std::move(reason)) {}

  const std::string reason;

  void run(Run &run) const override;
};

/// One of several branches, chosen by an element of i32, the last one where there is none of that number; or by one of
/// i1, whose first branch is for true.
struct BranchStep : Step {
  struct Branch {
    Steps steps;
    std::vector<Copy> results;
  };
  uint32_t index = 0;
  bool is_boolean = false;
  std::vector<Branch> branches;

  void run(Run &run) const override;
};

/// `carried` are copied to the values of the loop; a trip computes others, which go by way of `saved` where one of them is
/// itself a value of the loop.
struct WhileStep : Step {
  std::vector<Copy> carried, saved, next;
  Steps condition, body;
  uint32_t holds = 0; // i1

  void run(Run &run) const override;
};

} // namespace disc::interpreter
