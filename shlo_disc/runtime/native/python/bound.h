// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An executable whose first arguments are fixed.
#pragma once

#include "core/run_recorder.h"
#include "python_executable.h"

#include <optional>
#include <utility>

namespace disc {

/// Holds what calls need of the bound arguments: packed forms instead of elements where nothing else reads these.
class BoundExecutable {
public:
  /// `args` are the program's first arguments. `bound_tree` is the structure of (args, {}), `rest_tree` that of a
  /// call's (args, kwargs). Without `copy`, elements are read where they lie. Throws Error(type), Error(shape),
  /// AllocationFailure.
  BoundExecutable(std::shared_ptr<PythonExecutable> executable, const nb::tuple &args, const Tree &bound_tree,
                  std::shared_ptr<Tree> rest_tree, const nb::object &explain_bound, nb::object explain_structure,
                  bool donate, bool copy);

  nb::object call(const nb::tuple &args, const nb::dict &kwargs, Output output) const;

  /// As `PythonExecutable::profile`.
  std::vector<CommandTime> profile(const nb::tuple &args, const nb::dict &kwargs) const;

  using Recorded = std::pair<std::vector<RecordedSpan>, std::vector<RecordedSpan>>;

  /// A call whose results are dropped: when its commands ran, and ranges of them. Throws Error(device) on a GPU.
  Recorded record(const nb::tuple &args, const nb::dict &kwargs) const;

private:
  void take(size_t index, PyObject *leaf, bool packed_only, std::optional<size_t> same, bool copy);
  nb::object call_with(const nb::tuple &args, const nb::dict &kwargs, Output output, const DiscRuntime &runtime) const;

  std::shared_ptr<PythonExecutable> executable_;
  std::shared_ptr<Tree> rest_tree_;
  nb::object explain_structure_;
  PackedForms forms_;
  std::unique_ptr<Arguments> bound_;
};

void bind_bound_executable(nb::module_ &module);

} // namespace disc
