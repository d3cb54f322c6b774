// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pjrt/compile.h"

#include "pjrt/error.h"
#include "pjrt/served_program.h"
#include "python/python_executable.h"
#include "python/python_reference.h"
#include "python_compiler.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

namespace disc::pjrt {

namespace {

constexpr size_t kTableBytes = size_t{1} << 30;
constexpr std::chrono::seconds kLockWait(5);

constexpr const char *kCompiler = "shlo_disc.pjrt.compile";

nb::object compiler() { return nb::module_::import_(kCompiler); }

/// Throws UNIMPLEMENTED if this Python has no compiler. Without nanobind, which is of no use before that import.
void import_compiler(const char *what) {
  bool collects = PyGC_Disable() != 0; // modules are no garbage, and a collection walks through all of JAX
  PyObject *module = PyImport_ImportModule(kCompiler);
  if (collects)
    PyGC_Enable();
  if (module) {
    Py_DECREF(module);
    return;
  }
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyObject *text = error ? PyObject_Str(error) : nullptr;
  const char *why = text ? PyUnicode_AsUTF8(text) : nullptr;
  std::string message = std::string(what) + " needs shlo_disc with its dependencies in this Python, which says: ";
  message += why ? why : "nothing";
  for (PyObject *object : {text, type, error, trace})
    Py_XDECREF(object);
  PyErr_Clear();
  throw Failure(PJRT_Error_Code_UNIMPLEMENTED, message);
}

/// Runs `body` with the GIL. What Python raises becomes a Failure, whose code and message Python chooses.
template <typename Body> auto with_python(const char *what, Body body) {
  if (!Py_IsInitialized())
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                  std::string(what) + " needs a Python interpreter in the process, with shlo_disc installed");
  nb::gil_scoped_acquire gil;
  import_compiler(what);
  free_abandoned_references();
  try {
    return body();
  } catch (nb::python_error &error) {
    std::string text = error.what();
    int code = PJRT_Error_Code_INTERNAL;
    std::tie(code, text) = nb::cast<std::pair<int, std::string>>(compiler().attr("describe_error")(error.value()));
    throw Failure(static_cast<PJRT_Error_Code>(code), text);
  }
}

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

std::string text_of(const nb::bytes &bytes) { return {bytes.c_str(), bytes.size()}; }

/// A shlo_disc.runtime.LoadedExecutable as C++ sees it.
Compiled compiled_of(const nb::object &loaded) {
  Compiled compiled;
  compiled.executable = nb::cast<const PythonExecutable &>(loaded.attr("native")).core();
  compiled.artifact = shared_reference(loaded.attr("artifact"));
  return compiled;
}

std::string contents_of(const Executable &executable, const Block &block) {
  std::string bytes(static_cast<size_t>(block.bytes()), '\0');
  executable.device()->read(bytes.data(), block.address(), block.bytes());
  return bytes;
}

TableExecutable adopt(const nb::object &loaded) { return table_executable(compiled_of(loaded)); }

/// A program for one device, in which shardings say nothing, without the dialect that our reader and the compiler lack;
/// and with arrays as kernels take them.
std::string for_one_device(std::string_view program) {
  return with_python("compiling", [&] {
    return text_of(nb::cast<nb::bytes>(compiler().attr("for_one_device")(bytes_of(program))));
  });
}

/// Writes down a program before it is compiled, where the user has asked for that.
void record(std::string_view program) {
  if (const char *folder = std::getenv("SHLO_DISC_RECORD"); folder && *folder)
    with_python("recording", [&] { return compiler().attr("record_program")(bytes_of(program)).is_none(); });
}

/// Tells whoever observes programs how one was served. Null where nobody does.
std::shared_ptr<CallCount> observe(std::string_view program, const char *how, const Purpose &purpose,
                                   std::chrono::steady_clock::time_point start) {
  if (!observes_programs() && purpose.max_programs == 0)
    return nullptr;
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return with_python("observing", [&] {
    nb::object count = compiler().attr("note_program")(bytes_of(program), how, seconds.count());
    return shared_with_python<CallCount>(count);
  });
}

/// Whether somebody wants to know of all programs what they became. The compiler, which may not be loaded yet, reads these
/// variables itself.
bool is_observed() {
  auto is_set = [](const char *variable) {
    const char *said = std::getenv(variable);
    return said && *said;
  };
  return observes_programs() || is_set("JAX_SHLO_DISC_EXPLAIN") || is_set("SHLO_DISC_WATCH");
}

/// participants: how many devices run the program together.
ProgramCompiler python_compiler(const Purpose &purpose, int64_t participants) {
  int gpu = purpose.gpu, max_programs = purpose.max_programs;
  ProgramCompiler out;
  out.most_interpreted = participants == 1 && !is_observed() ? purpose.most_interpreted : 0;
  out.compile = [=](std::string_view program, std::string_view) {
    return with_python("compiling", [&] {
      return adopt(compiler().attr("compile_program")(bytes_of(program), gpu, max_programs, participants));
    });
  };
  out.generalize = [=](const std::vector<std::string_view> &programs, std::string_view) {
    return with_python("compiling", [&] {
      nb::object found = compiler().attr("generalize_programs")(list_of(programs), gpu, max_programs, participants);
      return symbolic_program(found, adopt);
    });
  };
  return out;
}

/// The program as the table serves it, which has its executable or has it compiled.
Compiled served_by_table(std::string_view program, const Purpose &purpose, int64_t participants,
                         std::chrono::steady_clock::time_point start) {
  std::string options = std::to_string(purpose.gpu) + ' ' + std::to_string(participants);
  Served served = program_table().compile(program, options, python_compiler(purpose, participants));
  if (!served.unreadable.empty() && std::getenv("JAX_SHLO_DISC_EXPLAIN"))
    std::fprintf(stderr, "shlo_disc: compiled for one shape only: %s\n", served.unreadable.c_str());
  std::shared_ptr<CallCount> calls = observe(program, name_of(served.how), purpose, start);
  auto compile = [program = served.not_compiled ? std::string(program) : std::string(), purpose, participants] {
    // Another thread may compile the program, and wait for Python's lock.
    std::optional<nb::gil_scoped_release> unlocked;
    if (Py_IsInitialized() && PyGILState_Check())
      unlocked.emplace();
    auto now = std::chrono::steady_clock::now();
    return served_by_table(program, purpose.without_interpreter(), participants, now);
  };
  Compiled compiled = compiled_of(std::move(served), std::move(compile));
  compiled.calls = std::move(calls);
  return compiled;
}

} // namespace

bool trusts_executables() { return true; }

std::shared_ptr<Compiler> make_compiler(const std::string &command, std::chrono::seconds limit) {
  if (!command.empty() || limit.count() != 0)
    fail_argument("the options compiler and compile_seconds are those of the plugin without Python; this process compiles");
  return nullptr;
}

void require_compiler() {
  if (!Py_IsInitialized() || PyGILState_Check())
    return;
  auto taken = std::make_shared<std::promise<void>>();
  std::future<void> future = taken->get_future();
  std::thread([taken] {
    nb::gil_scoped_acquire gil;
    taken->set_value();
  }).detach();
  if (future.wait_for(kLockWait) != std::future_status::ready)
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                  "compiling needs Python's lock, which the framework keeps while it waits for the executable: compile "
                  "with a client, not for a topology");
}

ProgramTable &program_table() {
  static auto *table = new ProgramTable(kTableBytes); // never destroyed: it refers to Python objects
  return *table;
}

std::string read_untrusted(std::string_view program, const Purpose &) {
  return with_python("compiling", [&] {
    return text_of(nb::cast<nb::bytes>(compiler().attr("read_untrusted")(bytes_of(program))));
  });
}

std::shared_ptr<Device> gpu_device(int ordinal) {
  return with_python("finding a GPU", [&] {
    nb::object client = nb::module_::import_("shlo_disc.runtime.clients").attr("gpu_client")(ordinal);
    return shared_with_python<Device>(client.attr("native_device"));
  });
}

Compiled compile(std::string_view program, const Purpose &purpose) {
  record(program);
  auto start = std::chrono::steady_clock::now();
  std::string rewritten;
  if (states_placement(program))
    program = rewritten = for_one_device(program);
  return served_by_table(program, purpose, 1, start);
}

std::pair<Compiled, std::string> compile_for_devices(std::string_view program, int64_t replicas,
                                                     int64_t partitions, const Purpose &purpose) {
  record(program);
  auto start = std::chrono::steady_clock::now();
  auto [each, of_devices] = with_python("compiling", [&] {
    nb::object made = compiler().attr("for_devices")(bytes_of(program), replicas, partitions);
    auto [bytes, attributes] = nb::cast<std::pair<nb::bytes, std::string>>(made);
    return std::pair(text_of(bytes), attributes);
  });
  Compiled compiled = served_by_table(each, purpose, replicas * partitions, start);
  compiled.of_devices = std::move(of_devices);
  return {std::move(compiled), std::move(each)};
}

Compiled loaded_on(const Compiled &compiled, int gpu) {
  Compiled there = with_python("loading", [&] {
    nb::handle artifact(static_cast<PyObject *>(compiled.artifact.get()));
    return compiled_of(compiler().attr("load_on")(artifact, gpu));
  });
  there.symbols = compiled.symbols;
  there.of_devices = compiled.of_devices;
  for (const std::shared_ptr<Block> &block : compiled.hidden)
    there.hidden.push_back(block_of(*there.executable, contents_of(*compiled.executable, *block)));
  return there;
}

std::optional<double> count_flops(const Compiled &compiled) {
  return with_python("counting operations", [&] {
    nb::handle artifact(static_cast<PyObject *>(compiled.artifact.get()));
    return nb::cast<std::optional<double>>(compiler().attr("count_flops")(artifact, compiled.symbols));
  });
}

void register_function(const std::string &name, void *handler) {
  with_python("registering a function", [&] {
    return compiler().attr("register_function")(name, reinterpret_cast<uintptr_t>(handler)).is_none();
  });
}

std::string serialize(const Compiled &compiled, std::string_view program, std::string_view options) {
  return with_python("serializing", [&] {
    nb::handle artifact(static_cast<PyObject *>(compiled.artifact.get()));
    nb::list hidden;
    for (const std::shared_ptr<Block> &block : compiled.hidden)
      hidden.append(bytes_of(contents_of(*compiled.executable, *block)));
    return text_of(nb::cast<nb::bytes>(
        compiler().attr("serialize")(artifact, bytes_of(program), bytes_of(options), compiled.symbols, hidden)));
  });
}

Deserialized deserialize(std::string_view bytes, std::string options,
                         const std::function<int(const std::string &options)> &gpu_for) {
  return with_python("deserializing", [&] {
    nb::object parts = compiler().attr("deserialize")(bytes_of(bytes));
    if (options.empty())
      options = text_of(nb::cast<nb::bytes>(parts.attr("options")));
    Deserialized result{compiled_of(compiler().attr("load_on")(parts.attr("artifact"), gpu_for(options))),
                        text_of(nb::cast<nb::bytes>(parts.attr("program"))), options};
    result.compiled.symbols = nb::cast<std::vector<int64_t>>(parts.attr("symbols"));
    for (const nb::bytes &argument : nb::cast<std::vector<nb::bytes>>(parts.attr("hidden"))) {
      result.compiled.hidden.push_back(block_of(*result.compiled.executable, {argument.c_str(), argument.size()}));
    }
    return result;
  });
}

} // namespace disc::pjrt
