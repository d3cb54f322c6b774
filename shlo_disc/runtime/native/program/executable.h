// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded program and what it runs on. Knows no Python: addresses and sizes go in, blocks of memory come out.
#pragma once

#include "core/abi.h"
#include "core/device.h"
#include "core/memory.h"
#include "interruptible_run.h"
#include "object_code.h"
#include "plan.h"
#include "prepacked.h"
#include "processors.h"
#include "program.h"

#include <memory>
#include <string>
#include <vector>

namespace disc {

/// A program's block of constants, and what `pack_constants` made of it or nothing, alive as long as `owner` is.
struct ConstantBlock {
  const char *data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<const void> owner;
  std::string_view packed = {};
};

/// The code of a program: the host functions, and what runs on a device that is apart from the processor.
struct ProgramCode {
  std::string_view object;
  std::string_view device = {};
};

/// What runs a program that has no code of its own, and whose sizes are all known. Thread-safe.
class Interpretation {
public:
  virtual ~Interpretation() = default;
  virtual int64_t arena_bytes() const = 0;
  virtual void run(void *const *arguments, void *const *results, void *arena) const = 0;
};

using PackedForms = std::vector<std::shared_ptr<void>>; // elements, one a PackSpec; null where there is none

/// Where the sizes of all results are. The parts keep them alive.
struct CallPlan {
  struct Result {
    const int64_t *shape;
    int64_t bytes;
  };
  std::vector<std::shared_ptr<const Plan>> parts; // one a segment
  std::vector<Result> results;                    // one a leaf
};

/// The results of one call. The plans keep the shapes alive.
struct Results {
  struct Leaf {
    std::shared_ptr<Block> block;
    const int64_t *shape = nullptr;
  };
  std::vector<Leaf> leaves;
  std::shared_ptr<const Plan> plan;                // of the first segment
  std::vector<std::shared_ptr<const Plan>> others; // of those after it
  std::shared_ptr<const Event> done;               // null: they are there
};

/// Thread-safe. Throws Error, with kinds as in error.h.
class Executable {
public:
  /// The constants are used in place when they are 64-byte aligned and the device can, else copied once.
  Executable(std::shared_ptr<Device> device, Program program, ProgramCode code, ConstantBlock constants,
             int64_t memo_bytes, bool perf_map);

  /// A program of one segment on processors.
  Executable(std::shared_ptr<Device> device, Program program, std::shared_ptr<const Interpretation> interpretation);
  Executable(const Executable &) = delete;
  Executable &operator=(const Executable &) = delete;

  /// The plan of the first segment for a call with arguments of these sizes. Throws Error(shape).
  std::shared_ptr<const Plan> plan(Dims dims) const { return code_->planners.front()->plan(dims); }

  /// The same for values of the symbols that the arguments determine.
  std::shared_ptr<const Plan> first_plan(Values symbols) const { return code_->planners.front()->plan_for(symbols); }

  /// Runs the program. `buffers` has the addresses of the arguments' elements, in C order, and is used up; `plan` is the
  /// plan for their sizes; `packed` has the packed forms at hand; `runtime` is this executable's, a clock's or a
  /// participant's. On processors, a run that `is_interrupted`, where that is not null, throws Interrupted.
  Results run(std::shared_ptr<const Plan> plan, std::vector<void *> buffers, const PackedForms &packed,
              const DiscRuntime &runtime, IsInterrupted is_interrupted = nullptr) const;

  /// The same into memory of the caller's, for a program of one segment: `buffers` has the addresses of the results
  /// behind those of the arguments, each aligned to 64 bytes.
  void run_into(const Plan &plan, std::vector<void *> buffers, const PackedForms &packed,
                const DiscRuntime &runtime) const;

  /// How many addresses a run puts into `buffers`: reserve as many.
  size_t buffer_count() const { return buffer_count_; }

  const DiscRuntime &runtime() const { return commands_->runtime(); }

  /// The packed form of an array.
  std::shared_ptr<Block> pack(const PackSpec &spec, const void *source) const;

  /// The packed forms of constants, and memory for those of arguments.
  const PackedForms &constant_forms() const { return constant_forms_; }

  /// Sizes of all results for given values of all symbols, and the arenas' bytes. Throws Error(shape).
  CallPlan plan_for(const std::vector<int64_t> &symbols) const;

  /// Allocates what a call at these symbol values does, gives it memory, and leaves it to the allocator's cache.
  void prepare(const std::vector<int64_t> &symbols) const;

  /// Whether the program calls functions that are registered in this process.
  bool calls_others() const;

  const Program &program() const { return code_->program; }
  const std::shared_ptr<Device> &device() const { return device_; }

  /// The threads of a program with packed forms, which programs for processors alone have.
  ThreadPool &pool() const;
  const std::shared_ptr<Allocator> &allocator() const { return device_->allocator; }
  int64_t constant_bytes() const { return constant_bytes_; }
  int64_t code_bytes() const { return code_->object ? static_cast<int64_t>(code_->object->mapped_bytes()) : 0; }
  int64_t memo_size() const;
  std::vector<std::vector<int64_t>> memo_symbols() const { return code_->planners.front()->memo().symbols(); }
  int64_t memo_bytes() const;
  std::vector<std::string> function_names() const {
    return code_->object ? code_->object->function_names() : std::vector<std::string>();
  }
  std::string function_at(const void *address) const { return code_->object ? code_->object->function_at(address) : ""; }

private:
  /// At a fixed address: the planner refers to the program.
  struct Code {
    Code(Program given, std::string_view object, int64_t memo_bytes);
    Code(Program given, std::shared_ptr<const Interpretation> interpretation);

    Program program;
    std::unique_ptr<ObjectCode> object; // or
    std::shared_ptr<const Interpretation> interpretation;
    std::vector<std::unique_ptr<Planner>> planners; // one a segment, as `runs`
    std::vector<DiscRun> runs;
  };

  void hold_constants(ConstantBlock constants);
  std::shared_ptr<Block> copied(std::string_view bytes);
  void hold_packed(const ConstantBlock &constants, bool in_place);
  void allocate_results(size_t segment, const Plan &plan, std::vector<Results::Leaf> &results,
                        std::vector<void *> &buffers) const;
  void add_constants(std::vector<void *> &buffers, const PackedForms &packed) const;
  void run_segment(size_t segment, std::span<void *const> buffers, const Plan &plan, void *arena,
                   const DiscRuntime &runtime, IsInterrupted is_interrupted) const;
  void run_segments(Results &results, std::vector<void *> &buffers, const DiscRuntime &runtime,
                    IsInterrupted is_interrupted) const;

  std::shared_ptr<Device> device_;
  std::unique_ptr<Code> code_;
  std::unique_ptr<Commands> commands_;
  std::shared_ptr<const void> constants_owner_; // where they are used in place, else
  std::shared_ptr<Block> constants_copy_;
  int64_t constant_bytes_ = 0;
  std::vector<void *> constant_addresses_;
  PackedForms constant_forms_; // those of constants
  size_t buffer_count_ = 0;
};

} // namespace disc
