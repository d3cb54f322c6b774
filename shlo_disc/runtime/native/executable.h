// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded program and what it runs on.
#pragma once

#include "abi.h"
#include "arguments.h"
#include "buffer.h"
#include "library_call.h"
#include "memory.h"
#include "object_code.h"
#include "plan.h"
#include "repeats.h"
#include "program.h"
#include "step_clock.h"
#include "thread_pool.h"
#include "tree.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

namespace disc {

/// Threads and memory, shared by the executables of one client.
struct Device {
  Device(int threads, int64_t live_limit, int64_t cache_limit, bool guard_pages)
      : pool(threads), allocator(std::make_shared<Allocator>(live_limit, cache_limit, guard_pages)) {}

  ThreadPool pool;
  std::shared_ptr<Allocator> allocator;
};

/// What generated code reaches through DiscRuntime::opaque.
struct RunContext {
  Device *device;
  std::vector<BoundCall> calls;
};

enum class Output { automatic, numpy, jax, buffer };

/// Python objects that calls need; set once by the Python face.
struct ExecutableHooks {
  nb::object explain_structure; // (args, kwargs) -> message
  nb::object jax_converter;     // () -> (ndarray -> jax.Array, collect or None); called once, for the first such result
};

/// Where the sizes of all results are. The parts keep them alive.
struct CallPlan {
  struct Result {
    const int64_t *shape;
    int64_t bytes;
  };
  std::vector<std::shared_ptr<const Plan>> parts; // one a segment
  std::vector<Result> results;                    // one a leaf
};

class Executable {
public:
  /// `constants` is any object with a buffer; it is used in place when it is 64-byte aligned, else copied once.
  Executable(std::shared_ptr<Device> device, Program program, const std::string &object, nb::object constants,
             std::shared_ptr<Tree> in_tree, std::shared_ptr<Tree> out_tree, ExecutableHooks hooks, int64_t memo_bytes,
             bool perf_map);
  ~Executable();

  nb::object call(const nb::tuple &args, const nb::dict &kwargs, Output output);

  /// A call whose results are dropped: what each step of the program took.
  std::vector<StepTime> profile(const nb::tuple &args, const nb::dict &kwargs);

  /// The rest of a call whose arguments have been described, over this executable's runtime or a clock's.
  nb::object run(Arguments &arguments, Output output, const PackedForms &packed, const DiscRuntime &runtime);

  const DiscRuntime &runtime() const { return runtime_; }

  /// Fills in the packed forms whose source is one of `arguments`.
  void pack_argument(size_t index, Arguments &arguments, PackedForms &forms) const;

  /// The packed forms of constants, and room for those of arguments.
  const PackedForms &constant_forms() const { return constant_forms_; }

  /// Sizes of all results for given values of all symbols, and the arenas' bytes. Throws Error(shape).
  CallPlan plan_for(const std::vector<int64_t> &symbols) const;

  /// Allocates what a call at these symbol values does, gives it memory, and leaves it to the allocator's cache.
  void prepare(const std::vector<int64_t> &symbols) const;

  const Program &program() const { return code_->program; }
  const Device &device() const { return *device_; }
  int64_t memo_size() const;
  std::vector<std::vector<int64_t>> memo_symbols() const { return code_->planners.front()->memo().symbols(); }
  int64_t memo_bytes() const;
  std::vector<std::string> function_names() const { return code_->object.function_names(); }

private:
  /// At a fixed address: the planner refers to the program.
  struct Code {
    Code(Program given, const std::string &object, int64_t memo_bytes);

    Program program;
    ObjectCode object;
    std::vector<std::unique_ptr<Planner>> planners; // one a segment, as `runs`
    std::vector<DiscRun> runs;
  };

  /// A leaf of the results of one call; `shape` lies in a plan.
  struct Result {
    std::shared_ptr<Block> block;
    const int64_t *shape = nullptr;
  };

  void hold_constants(nb::object constants);
  void collect_dropped_results() const;
  std::shared_ptr<Block> pack(const PackSpec &spec, const void *source) const;
  std::vector<PyObject *> flatten(const nb::tuple &args, const nb::dict &kwargs, std::vector<nb::object> &owners);
  void allocate_results(size_t segment, const Plan &plan, std::vector<Result> &results,
                        std::vector<void *> &buffers) const;
  void run_segment(size_t segment, void *const *buffers, const Plan &plan, void *arena,
                   const DiscRuntime &runtime) const;
  void run_segments(std::vector<std::shared_ptr<const Plan>> &plans, std::vector<Result> &results,
                    std::vector<void *> &buffers, const DiscRuntime &runtime) const;
  nb::object call_with(const nb::tuple &args, const nb::dict &kwargs, Output output, const DiscRuntime &runtime);
  nb::object make_results(std::vector<Result> results, Output output);
  nb::object make_result(DType dtype, const int64_t *shape, size_t rank, std::shared_ptr<Block> block, Output output);

  std::shared_ptr<Device> device_;
  RunContext context_;
  DiscRuntime runtime_;
  std::unique_ptr<Code> code_;
  nb::object constants_owner_;
  Py_buffer constants_view_{};
  std::shared_ptr<Block> constants_copy_;
  std::vector<void *> constant_addresses_;
  PackedForms constant_forms_; // those of constants
  Repeats repeats_;
  std::shared_ptr<Tree> in_tree_;
  std::shared_ptr<Tree> out_tree_;
  ExecutableHooks hooks_;
  nb::object to_jax_, collect_jax_; // what the hook returned
};

void bind_executable(nb::module_ &module);

} // namespace disc
