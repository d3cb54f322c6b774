// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compile.h"

#include "../python_executable.h"
#include "error.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace disc::pjrt {

namespace {

nb::object compiler() { return nb::module_::import_("shlo_disc.pjrt.compile"); }

/// Runs `body` with the GIL. What Python raises becomes a Failure, whose code and message Python chooses.
template <typename Body> auto with_python(const char *what, Body body) {
  if (!Py_IsInitialized())
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                  std::string(what) + " needs a Python interpreter in the process, with shlo_disc installed");
  nb::gil_scoped_acquire gil;
  try {
    return body();
  } catch (nb::python_error &error) {
    std::string text = error.what();
    int code = PJRT_Error_Code_INTERNAL;
    try {
      std::tie(code, text) = nb::cast<std::pair<int, std::string>>(compiler().attr("describe_error")(error.value()));
    } catch (const std::exception &) {
      // The compiler cannot even be imported: the first error tells why.
    }
    throw Failure(static_cast<PJRT_Error_Code>(code), text);
  }
}

PythonObject owned(nb::object object) {
  return {object.release().ptr(), [](void *held) {
            if (!Py_IsInitialized())
              return;
            nb::gil_scoped_acquire gil;
            Py_DECREF(static_cast<PyObject *>(held));
          }};
}

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

std::string text_of(const nb::bytes &bytes) { return {bytes.c_str(), bytes.size()}; }

/// A shlo_disc.runtime.LoadedExecutable as C++ sees it.
Compiled compiled_of(const nb::object &loaded) {
  Compiled compiled;
  compiled.executable = nb::cast<const PythonExecutable &>(loaded.attr("native")).core();
  compiled.artifact = owned(loaded.attr("artifact"));
  return compiled;
}

} // namespace

Compiled compile(std::string_view program, std::string_view format) {
  if (format != "mlir")
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                  "programs come in the format 'mlir', not '" + std::string(format) + "'");
  return with_python("compiling", [&] { return compiled_of(compiler().attr("compile_program")(bytes_of(program))); });
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
      hidden.append(nb::bytes(block->address(), static_cast<size_t>(block->bytes())));
    return text_of(nb::cast<nb::bytes>(
        compiler().attr("serialize")(artifact, bytes_of(program), bytes_of(options), compiled.symbols, hidden)));
  });
}

Deserialized deserialize(std::string_view bytes) {
  return with_python("deserializing", [&] {
    nb::object parts = compiler().attr("deserialize")(bytes_of(bytes));
    Deserialized result{compiled_of(parts.attr("loaded")), text_of(nb::cast<nb::bytes>(parts.attr("program"))),
                        text_of(nb::cast<nb::bytes>(parts.attr("options")))};
    result.compiled.symbols = nb::cast<std::vector<int64_t>>(parts.attr("symbols"));
    for (const nb::bytes &argument : nb::cast<std::vector<nb::bytes>>(parts.attr("hidden"))) {
      auto block = std::make_shared<Block>(result.compiled.executable->allocator(),
                                           static_cast<int64_t>(argument.size()), BlockKind::constant);
      std::memcpy(block->address(), argument.c_str(), argument.size());
      result.compiled.hidden.push_back(std::move(block));
    }
    return result;
  });
}

} // namespace disc::pjrt
