// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An executable as Python calls it: trees of arrays in and out. Its callers hold the GIL.
#pragma once

#include "arguments.h"
#include "buffer.h"
#include "program/executable.h"
#include "repeats.h"
#include "core/command_clock.h"
#include "tree.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

namespace disc {

/// The last is for calls that a jax.Array on the program's GPU is given to.
enum class Output { automatic, numpy, jax, buffer, jax_on_device };

/// Python objects that calls need; set once by the Python face.
struct ExecutableHooks {
  nb::object explain_structure; // (args, kwargs) -> message
  nb::object memory;            // of results that are Buffers
  nb::object jax_converter;     // () -> (ndarray -> jax.Array, collect or None); called once, for the first such result
  nb::object key_array;         // (the data of PRNG keys, implementation) -> an array of keys
};

class PythonExecutable {
public:
  PythonExecutable(std::shared_ptr<Executable> core, std::shared_ptr<Tree> in_tree, std::shared_ptr<Tree> out_tree,
                   ExecutableHooks hooks);

  nb::object call(const nb::tuple &args, const nb::dict &kwargs, Output output);

  /// One call on several devices at a time: (args, kwargs) of each, and the memory for its results. `on`: the program as
  /// it is loaded on each device; processors share one.
  nb::list call_sharded(const std::vector<std::pair<nb::tuple, nb::dict>> &calls,
                        const std::vector<nb::object> &memories, Output output,
                        const std::vector<PythonExecutable *> &on);

  /// A call whose results are dropped: what each command of the program took.
  std::vector<CommandTime> profile(const nb::tuple &args, const nb::dict &kwargs);

  /// The rest of a call whose arguments have been described, over the executable's runtime or a clock's.
  nb::object run(Arguments &arguments, Output output, const PackedForms &packed, const DiscRuntime &runtime);

  /// Deletes the arrays that are given for arguments which the program may use up: the program's last ones.
  void delete_donated(const std::vector<PyObject *> &leaves) const;

  /// Fills in the packed forms whose source is one of `arguments`.
  void pack_argument(size_t index, Arguments &arguments, PackedForms &forms) const;

  const std::shared_ptr<Executable> &core() const { return core_; }
  const Program &program() const { return core_->program(); }

private:
  void collect_dropped_results() const;
  std::shared_ptr<Block> pack(const PackSpec &spec, const void *source) const;
  std::vector<PyObject *> flatten(const nb::tuple &args, const nb::dict &kwargs, std::vector<nb::object> &owners);
  nb::object run_leaves(const std::vector<PyObject *> &leaves, Arguments &arguments, Output output,
                        const DiscRuntime &runtime);
  nb::object call_with(const nb::tuple &args, const nb::dict &kwargs, Output output, const DiscRuntime &runtime);
  nb::object make_results(Results results, Output output, const nb::object &memory);
  nb::object make_result(const ArraySpec &spec, Results::Leaf leaf, const std::shared_ptr<const Event> &done,
                         Output output, const nb::object &memory);

  std::shared_ptr<Executable> core_;
  Repeats repeats_;
  std::shared_ptr<Tree> in_tree_;
  std::shared_ptr<Tree> out_tree_;
  ExecutableHooks hooks_;
  nb::object to_jax_, collect_jax_; // what the hook returned
};

void bind_executable(nb::module_ &module);
void bind_artifact(nb::module_ &module);

} // namespace disc
