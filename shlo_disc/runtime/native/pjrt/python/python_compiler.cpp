// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python_compiler.h"

#include "collectives/transport.h"
#include "interpreter/program.h"
#include "pjrt/compile.h"
#include "pjrt/worker.h"
#include "python/python_reference.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace disc {

namespace nb = nanobind;
using namespace pjrt;

namespace {

nb::bytes bytes_of(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

std::string_view view_of(const nb::bytes &bytes) { return {bytes.c_str(), bytes.size()}; }

using StepRow = std::tuple<int64_t, int64_t, int64_t>;

std::vector<pjrt::SizeStep> steps_of(nb::handle rows) {
  std::vector<pjrt::SizeStep> steps;
  for (auto [kind, a, b] : nb::cast<std::vector<StepRow>>(rows))
    steps.push_back({kind, a, b});
  return steps;
}

/// The results of all steps; None where they cannot be computed.
nb::object evaluate_steps(nb::handle rows, const std::vector<int64_t> &symbols) {
  std::vector<int64_t> values;
  return evaluate(steps_of(rows), symbols, values) ? nb::cast(values) : nb::none();
}

/// What `read_program` found.
nb::dict describe(const nb::bytes &bytes, bool with_places) {
  static constexpr const char *kinds[] = {"result", "argument", "attribute", "element", "operand"};
  StaticProgram program = read_program(view_of(bytes), with_places);
  nb::dict out;
  out["skeleton"] = bytes_of(program.skeleton);
  out["numbers"] = nb::cast(program.numbers);
  nb::list places, constants;
  for (const NumberPlace &place : program.places) {
    nb::object index = place.kind == NumberPlace::attribute ? nb::cast(std::string(place.name)) : nb::cast(place.index);
    places.append(nb::make_tuple(kinds[place.kind], place.op, index, place.axis, place.region));
  }
  for (const ProgramConstant &constant : program.constants)
    constants.append(nb::make_tuple(constant.number, constant.number_count, constant.is_splat, constant.names_function));
  out["places"] = places;
  out["constants"] = constants;
  out["functions"] = nb::cast(program.functions);
  out["ops"] = nb::cast(program.ops);
  out["starts"] = nb::cast(program.starts);
  return out;
}

nb::tuple compile_in_table(ProgramTable &table, const nb::bytes &program, const nb::bytes &options,
                           const nb::object &compile, const nb::object &generalize) {
  auto adopt = [](nb::object executable) { return TableExecutable{shared_reference(std::move(executable)), 1}; };
  ProgramCompiler compiler;
  compiler.compile = [&](std::string_view one, std::string_view with) {
    nb::gil_scoped_acquire lock;
    return adopt(compile(bytes_of(one), bytes_of(with)));
  };
  compiler.generalize = [&](const std::vector<std::string_view> &programs, std::string_view with) {
    nb::gil_scoped_acquire lock;
    return symbolic_program(generalize(list_of(programs), bytes_of(with)), adopt);
  };
  Served served;
  {
    nb::gil_scoped_release unlocked;
    served = table.compile(view_of(program), view_of(options), compiler);
  }
  nb::list hidden;
  for (const HiddenArgument &argument : served.hidden)
    hidden.append(nb::make_tuple(bytes_of(argument.bytes), nb::cast(argument.sizes)));
  return nb::make_tuple(nb::handle(static_cast<PyObject *>(served.executable.get())), hidden, name_of(served.how));
}

std::atomic<bool> observing = false;

} // namespace

bool observes_programs() { return observing; }

const char *name_of(Served::How how) {
  static constexpr const char *names[] = {"compiled", "compiled_symbolic", "known", "instance", "interpreted"};
  return names[how];
}

std::optional<SymbolicProgram> symbolic_program(const nb::object &found, const AdoptExecutable &adopt) {
  if (found.is_none())
    return std::nullopt;
  nb::tuple parts = nb::cast<nb::tuple>(found);
  SymbolicProgram out;
  out.compiled = adopt(parts[0]);
  out.symbols = nb::cast<std::vector<uint32_t>>(parts[1]);
  out.steps = steps_of(parts[2]);
  for (int64_t step : nb::cast<std::vector<int64_t>>(parts[3]))
    out.expected.push_back(step < 0 ? SymbolicProgram::any : static_cast<uint32_t>(step));
  out.hidden = nb::cast<std::vector<uint32_t>>(parts[4]);
  out.least = nb::cast<std::vector<int64_t>>(parts[5]);
  out.given = nb::cast<std::vector<uint32_t>>(parts[6]);
  return out;
}

nb::list list_of(const std::vector<std::string_view> &programs) {
  nb::list list;
  for (std::string_view program : programs)
    list.append(bytes_of(program));
  return list;
}

nb::dict counts_of(const ProgramTable &table) {
  const TableCounts &counts = table.counts();
  nb::dict out;
  out["unreadable"] = counts.unreadable.load();
  out["compiled"] = counts.compiled.load();
  out["compiled_symbolic"] = counts.compiled_symbolic.load();
  out["known"] = counts.known.load();
  out["instances"] = counts.instances.load();
  out["not_general"] = counts.not_general.load();
  out["interpreted"] = counts.interpreted.load();
  return out;
}

/// Runs a program by the interpreter; arrays are NumPy's. Raises ValueError where it does not take the program.
nb::list interpret(const nb::bytes &program, const nb::list &arrays, int64_t most_work) {
  std::shared_ptr<const interpreter::Program> read;
  try {
    read = interpreter::Program::read(view_of(program), most_work);
  } catch (const std::runtime_error &reason) {
    throw nb::value_error(reason.what());
  }
  std::vector<nb::bytes> given;
  std::vector<const void *> inputs;
  for (nb::handle array : arrays) {
    given.push_back(nb::cast<nb::bytes>(array.attr("tobytes")()));
    inputs.push_back(given.back().c_str());
    size_t place = given.size() - 1;
    if (place < read->arguments.size() && static_cast<int64_t>(given.back().size()) != read->arguments[place].bytes())
      throw nb::value_error("an array has another size than the argument");
  }
  if (given.size() != read->arguments.size())
    throw nb::value_error("the program takes another number of arrays");
  nb::object empty = nb::module_::import_("numpy").attr("empty");
  nb::list results;
  std::vector<void *> outputs;
  for (const interpreter::Type &type : read->results) {
    results.append(empty(nb::tuple(nb::cast(type.dims)), std::string(info(type.dtype).numpy)));
    outputs.push_back(reinterpret_cast<void *>(nb::cast<uintptr_t>(results[results.size() - 1].attr("ctypes").attr("data"))));
  }
  Block memory(default_device()->allocator, read->memory_bytes(), BlockKind::arena);
  try {
    read->run(inputs.data(), outputs.data(), memory.address(), most_work);
  } catch (const interpreter::Unsupported &reason) {
    throw nb::value_error(reason.what());
  }
  return results;
}

void bind_programs(nb::module_ &module) {
  module.def("interpret", &interpret, nb::arg("program"), nb::arg("arrays"), nb::arg("most_work") = INT64_MAX,
             "The results of a portable artifact, op by op. Raises ValueError where it has something that is only compiled.");
  module.def("read_program", &describe, nb::arg("program"), nb::arg("with_places") = true);
  module.def("leave_job", &Transport::close_all, nb::call_guard<nb::gil_scoped_release>(),
             "Tells the other processes of the job that this one ends.");
  module.def(
      "finish_runs", [](int64_t milliseconds) { return Worker::finish_all(std::chrono::milliseconds(milliseconds)); },
      nb::arg("milliseconds"), nb::call_guard<nb::gil_scoped_release>(),
      "Wait for the runs of all clients, so long at most; tells whether they have ended.");
  module.def("plugin_programs", &program_table, nb::rv_policy::reference, "The programs that the plugin has compiled.");
  module.def("evaluate_steps", &evaluate_steps, nb::arg("steps"), nb::arg("symbols"));
  module.def("observe_programs", [](bool wanted) { observing = wanted; }, nb::arg("wanted"),
             "Tell shlo_disc.pjrt.compile.note_program of each program that the plugin is given from now on.");
  nb::class_<CallCount>(module, "CallCount")
      .def(nb::new_([] { return std::make_shared<CallCount>(); }))
      .def_prop_ro("value", [](const CallCount &count) { return count.value.load(); });
  nb::class_<ProgramTable>(module, "ProgramTable")
      .def(nb::init<size_t>(), nb::arg("limit"))
      .def("compile", &compile_in_table, nb::arg("program"), nb::arg("options"), nb::arg("compile"),
           nb::arg("generalize"))
      .def("clear", &ProgramTable::clear, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("bytes", &ProgramTable::bytes)
      .def_prop_ro("counts", &counts_of);
}

} // namespace disc
