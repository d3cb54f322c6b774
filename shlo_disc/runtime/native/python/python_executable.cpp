// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python_executable.h"

#include "core/error.h"
#include "interruptible.h"
#include "sharded_run.h"
#include "without_gil.h"

#include <nanobind/stl/string.h>

namespace disc {

PythonExecutable::PythonExecutable(std::shared_ptr<Executable> core, std::shared_ptr<Tree> in_tree,
                                   std::shared_ptr<Tree> out_tree, ExecutableHooks hooks)
    : core_(std::move(core)), in_tree_(std::move(in_tree)), out_tree_(std::move(out_tree)), hooks_(std::move(hooks)) {
  if (in_tree_->leaves() != program().arguments.size() || out_tree_->leaves() != program().results.size())
    bad_artifact("header: the trees do not have as many leaves as there are arguments and results");
}

std::vector<PyObject *> PythonExecutable::flatten(const nb::tuple &args, const nb::dict &kwargs,
                                                  std::vector<nb::object> &owners) {
  std::vector<PyObject *> leaves;
  leaves.reserve(program().arguments.size());
  PyObject *both[] = {args.ptr(), kwargs.ptr()};
  if (!in_tree_->flatten_items(both, 2, leaves, owners))
    throw Error(ErrorKind::type, nb::cast<std::string>(hooks_.explain_structure(args, kwargs)));
  return leaves;
}

nb::object PythonExecutable::call(const nb::tuple &args, const nb::dict &kwargs, Output output) {
  return call_with(args, kwargs, output, core_->runtime());
}

std::vector<CommandTime> PythonExecutable::profile(const nb::tuple &args, const nb::dict &kwargs) {
  std::unique_ptr<CommandClock> clock = core_->device()->clock(core_->runtime());
  call_with(args, kwargs, Output::buffer, clock->runtime());
  return clock->times();
}

nb::object PythonExecutable::call_with(const nb::tuple &args, const nb::dict &kwargs, Output output,
                                       const DiscRuntime &runtime) {
  std::vector<nb::object> owners;
  std::vector<PyObject *> leaves = flatten(args, kwargs, owners);
  Arguments arguments(program(), *core_->device(), leaves);
  nb::object results = run_leaves(leaves, arguments, output, runtime);
  delete_donated(leaves);
  return results;
}

nb::object PythonExecutable::run_leaves(const std::vector<PyObject *> &leaves, Arguments &arguments, Output output,
                                        const DiscRuntime &runtime) {
  const std::vector<PackSpec> &packs = program().packs;
  if (packs.empty())
    return run(arguments, output, {}, runtime);
  auto remember = [&](size_t i) -> std::shared_ptr<RememberedForm> {
    const ArrayView &view = arguments.view(packs[i].buffer);
    return view.usable_in_place() ? std::make_shared<RememberedForm>(packs[i], view.data) : nullptr;
  };
  PackedForms packed(core_->constant_forms());
  std::vector<std::shared_ptr<RememberedForm>> remembered = repeats_.forms(program(), leaves, remember);
  std::vector<OfferedForm *> offered;
  for (size_t i = 0; i < packs.size(); ++i) {
    const std::shared_ptr<RememberedForm> &form = remembered[i];
    if (!form)
      continue;
    if (form->source() != arguments.view(packs[i].buffer).data) { // ndarray.resize moved it
      form->is_stale = true;
      continue;
    }
    offered.push_back(form.get());
    packed[i] = {form, offered.back()};
  }
  if (offered.empty())
    return run(arguments, output, packed, runtime);
  CheckingRuntime checking(runtime, *core_, std::move(offered));
  return run(arguments, output, packed, checking.runtime());
}

void PythonExecutable::delete_donated(const std::vector<PyObject *> &leaves) const {
  size_t bound = program().arguments.size() - leaves.size();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const ArraySpec &spec = program().arguments[bound + i];
    bool is_jax = reinterpret_cast<PyObject *>(Py_TYPE(leaves[i])) == argument_hooks().jax_array_type.ptr();
    nb::handle leaf(leaves[i]);
    if (spec.donated && (is_jax || nb::isinstance<Buffer>(leaf) || (!spec.key.empty() && nb::hasattr(leaf, "delete"))))
      leaf.attr("delete")();
  }
}

nb::list PythonExecutable::call_sharded(const std::vector<std::pair<nb::tuple, nb::dict>> &calls,
                                        const std::vector<nb::object> &memories, Output output,
                                        const std::vector<PythonExecutable *> &on) {
  std::vector<nb::object> owners;
  std::vector<std::vector<PyObject *>> leaves;
  std::vector<std::unique_ptr<Arguments>> arguments;
  ShardedRun run;
  for (size_t i = 0; i < calls.size(); ++i) {
    run.cores.push_back(on[i]->core_);
    leaves.push_back(flatten(calls[i].first, calls[i].second, owners));
    arguments.push_back(std::make_unique<Arguments>(program(), *run.cores[i]->device(), leaves.back()));
    run.plans.push_back(run.cores[i]->plan(arguments.back()->dims()));
    run.waits.push_back(arguments.back()->any_foreign());
  }
  for (const std::unique_ptr<Arguments> &given : arguments) {
    run.buffers.emplace_back(program().arguments.size());
    given->addresses(run.buffers.back().data());
  }
  std::vector<Results> results = without_gil([&] { return run_sharded(std::move(run)); });
  nb::list out;
  for (size_t i = 0; i < calls.size(); ++i) {
    bool is_jax = output == Output::automatic && arguments[i]->any_jax();
    out.append(on[i]->make_results(std::move(results[i]), is_jax ? Output::jax : output, memories[i]));
    delete_donated(leaves[i]);
  }
  return out;
}

/// Results that the caller has dropped give their memory to this call, not to the one after it.
void PythonExecutable::collect_dropped_results() const {
  if (collect_jax_.is_valid() && !collect_jax_.is_none())
    collect_jax_();
}

nb::object PythonExecutable::run(Arguments &arguments, Output output, const PackedForms &packed,
                                 const DiscRuntime &runtime) {
  std::shared_ptr<const Plan> plan = core_->plan(arguments.dims());
  if (output == Output::automatic)
    output = arguments.any_jax_on_device() ? Output::jax_on_device : arguments.any_jax() ? Output::jax : Output::numpy;
  if (output == Output::jax)
    collect_dropped_results();
  std::vector<void *> buffers;
  buffers.reserve(core_->buffer_count());
  buffers.resize(program().arguments.size());
  arguments.addresses(buffers.data());
  Results results = run_without_gil([&](IsInterrupted is_interrupted) {
    Results given = core_->run(std::move(plan), std::move(buffers), packed, runtime, is_interrupted);
    if (arguments.any_foreign()) // their owners may free them as soon as this returns
      given.done->wait();
    return given;
  });
  nb::object made = make_results(std::move(results), output, hooks_.memory);
  if (std::string notice = core_->device()->take_notice(); !notice.empty())
    if (PyErr_WarnEx(PyExc_RuntimeWarning, notice.c_str(), 1) != 0)
      throw nb::python_error();
  return made;
}

std::shared_ptr<Block> PythonExecutable::pack(const PackSpec &spec, const void *source) const {
  return without_gil([&] { return core_->pack(spec, source); });
}

void PythonExecutable::pack_argument(size_t index, Arguments &arguments, PackedForms &forms) const {
  for (size_t i = 0; i < forms.size(); ++i)
    if (program().packs[i].buffer == index)
      forms[i] = elements_of(pack(program().packs[i], arguments.elements(index)));
}

nb::object PythonExecutable::make_results(Results results, Output output, const nb::object &memory) {
  std::vector<nb::object> leaves;
  leaves.reserve(results.leaves.size());
  for (size_t i = 0; i < results.leaves.size(); ++i)
    leaves.push_back(make_result(program().results[i], std::move(results.leaves[i]), results.done, output, memory));
  nb::object *next = leaves.data();
  return out_tree_->unflatten(next);
}

nb::object PythonExecutable::make_result(const ArraySpec &spec, Results::Leaf leaf,
                                         const std::shared_ptr<const Event> &done, Output output,
                                         const nb::object &memory) {
  size_t rank = spec.shape.size();
  Buffer buffer(std::move(leaf.block), spec.dtype, std::vector<int64_t>(leaf.shape, leaf.shape + rank), memory,
                core_->device(), done);
  if (output == Output::buffer)
    return nb::cast(std::move(buffer));
  if (output == Output::jax_on_device && info(spec.dtype).has_dlpack()) {
    nb::object shared = nb::module_::import_("shlo_disc.runtime.jax_arrays").attr("shared_with_jax")(std::move(buffer));
    return spec.key.empty() ? shared : hooks_.key_array(shared, spec.key.c_str());
  }
  nb::object array = numpy_array(buffer.host_block(), spec.dtype, leaf.shape, rank);
  if (!spec.key.empty())
    return hooks_.key_array(array, spec.key.c_str());
  if (output == Output::numpy)
    return array;
  if (!to_jax_.is_valid()) {
    nb::tuple both = nb::cast<nb::tuple>(hooks_.jax_converter());
    collect_jax_ = both[1];
    to_jax_ = both[0];
  }
  return to_jax_(array);
}

} // namespace disc
