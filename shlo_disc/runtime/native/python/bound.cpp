// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bound.h"

#include "core/error.h"

#include <algorithm>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace disc {

namespace {

/// Deletes arrays that the caller has given away, where they are of a kind that can be.
class Donations {
public:
  ~Donations() { give_back(); }

  void take(PyObject *leaf) {
    bool is_jax = reinterpret_cast<PyObject *>(Py_TYPE(leaf)) == argument_hooks().jax_array_type.ptr();
    if (!is_jax && !nb::isinstance<Buffer>(nb::handle(leaf)))
      return;
    deleted_ += is_jax ? nb::cast<int64_t>(nb::handle(leaf).attr("nbytes")) : 0;
    nb::handle(leaf).attr("delete")();
    if (deleted_ >= kKept)
      give_back();
  }

private:
  static constexpr int64_t kKept = 32 << 20;

  /// The C library keeps what is freed to itself, and XLA's arrays lie in its heap: have it return whole pages.
  void give_back() {
#ifdef __GLIBC__
    if (deleted_ > 0)
      malloc_trim(0);
#endif
    deleted_ = 0;
  }

  int64_t deleted_ = 0;
};

} // namespace

BoundExecutable::BoundExecutable(std::shared_ptr<PythonExecutable> executable, const nb::tuple &args, const Tree &bound_tree,
                                 std::shared_ptr<Tree> rest_tree, const nb::object &explain_bound,
                                 nb::object explain_structure, bool donate, bool copy)
    : executable_(std::move(executable)), rest_tree_(std::move(rest_tree)),
      explain_structure_(std::move(explain_structure)), forms_(executable_->core()->constant_forms()) {
  std::vector<PyObject *> leaves;
  std::vector<nb::object> owners;
  nb::dict none;
  PyObject *both[] = {args.ptr(), none.ptr()};
  if (!bound_tree.flatten_items(both, 2, leaves, owners))
    throw Error(ErrorKind::type, nb::cast<std::string>(explain_bound(args, none)));
  const Program &program = executable_->program();
  Device &device = *executable_->core()->device();
  Arguments(program, device, leaves); // refuses what cannot be bound before anything is given away
  std::vector<bool> packed_only(leaves.size());
  for (size_t buffer : program.packed_only)
    if (buffer < leaves.size())
      packed_only[buffer] = true;
  bound_ = std::make_unique<Arguments>(program, device, leaves.size());
  Donations donations;
  for (size_t i = 0; i < leaves.size(); ++i) {
    std::optional<size_t> same; // the same object as an argument before, of which the elements are kept
    for (size_t k = 0; k < i; ++k)
      if (leaves[k] == leaves[i] && program.arguments[k].dtype == program.arguments[i].dtype && !packed_only[k])
        same = k;
    take(i, leaves[i], packed_only[i], same, copy);
    bool comes_again = std::find(leaves.begin() + i + 1, leaves.end(), leaves[i]) != leaves.end();
    if (donate && !comes_again)
      donations.take(leaves[i]);
  }
}

/// Packs an argument for the products that read it, and keeps its elements, or their owner, where anything else does.
void BoundExecutable::take(size_t index, PyObject *leaf, bool packed_only, std::optional<size_t> same, bool copy) {
  bound_->add(leaf);
  if (!packed_only && (copy || !bound_->is_usable(index)))
    bound_->keep_last(same);
  executable_->pack_argument(index, *bound_, forms_);
  if (packed_only)
    bound_->forget_last();
}

nb::object BoundExecutable::call(const nb::tuple &args, const nb::dict &kwargs, Output output) const {
  return call_with(args, kwargs, output, executable_->core()->runtime());
}

std::vector<CommandTime> BoundExecutable::profile(const nb::tuple &args, const nb::dict &kwargs) const {
  const Executable &core = *executable_->core();
  std::unique_ptr<CommandClock> clock = core.device()->clock(core.runtime());
  call_with(args, kwargs, Output::buffer, clock->runtime());
  return clock->times();
}

BoundExecutable::Recorded BoundExecutable::record(const nb::tuple &args, const nb::dict &kwargs) const {
  const Executable &core = *executable_->core();
  if (!core.device()->is_host())
    throw Error(ErrorKind::device, "calls on a GPU are not recorded");
  RunRecorder recorder(core.runtime());
  call_with(args, kwargs, Output::buffer, recorder.runtime());
  return {recorder.commands(), recorder.ranges()};
}

nb::object BoundExecutable::call_with(const nb::tuple &args, const nb::dict &kwargs, Output output,
                                      const DiscRuntime &runtime) const {
  std::vector<PyObject *> leaves;
  std::vector<nb::object> owners;
  PyObject *both[] = {args.ptr(), kwargs.ptr()};
  if (!rest_tree_->flatten_items(both, 2, leaves, owners))
    throw Error(ErrorKind::type, nb::cast<std::string>(explain_structure_(args, kwargs)));
  Arguments arguments(executable_->program(), *executable_->core()->device(), leaves, bound_.get());
  nb::object results = executable_->run(arguments, output, forms_, runtime);
  executable_->delete_donated(leaves);
  return results;
}

void bind_bound_executable(nb::module_ &module) {
  nb::class_<RecordedSpan>(module, "RecordedSpan", "A command, or a range of its work; times by the system's clock.")
      .def_ro("command", &RecordedSpan::command)
      .def_ro("thread", &RecordedSpan::thread)
      .def_ro("start", &RecordedSpan::start)
      .def_ro("nanoseconds", &RecordedSpan::nanoseconds);
  nb::class_<BoundExecutable>(module, "BoundExecutable", "An executable whose first arguments are fixed.")
      .def(nb::init<std::shared_ptr<PythonExecutable>, const nb::tuple &, const Tree &, std::shared_ptr<Tree>,
                    const nb::object &, nb::object, bool, bool>(),
           nb::arg("executable"), nb::arg("args"), nb::arg("bound_tree"), nb::arg("rest_tree"),
           nb::arg("explain_bound"), nb::arg("explain_structure"), nb::arg("donate"), nb::arg("copy"))
      .def("execute", &BoundExecutable::call, nb::arg("args"), nb::arg("kwargs"), nb::arg("output"))
      .def("profile", &BoundExecutable::profile, nb::arg("args"), nb::arg("kwargs"), "Time of each command of a call.")
      .def("record", &BoundExecutable::record, nb::arg("args"), nb::arg("kwargs"),
           "Times at which the commands of a call ran, and the ranges of their work.");
}

} // namespace disc
