// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Executables, their headers and their device, as Python sees them.
#include "artifact/header.h"
#include "buffer_bytes.h"
#include "contents.h"
#include "core/error.h"
#include "python_executable.h"
#include "without_gil.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace disc {

namespace {

nb::dict stats_dict(const MemoryStats &stats) {
  nb::dict result;
  result["live_bytes"] = stats.live_bytes;
  result["peak_bytes"] = stats.peak_bytes;
  result["cached_bytes"] = stats.cached_bytes;
  result["constant_bytes"] = stats.constant_bytes;
  result["arena_allocations"] = stats.arena_allocations;
  result["result_allocations"] = stats.result_allocations;
  result["argument_copies"] = stats.argument_copies;
  result["system_allocations"] = stats.system_allocations;
  result["last_arena_bytes"] = stats.last_arena_bytes;
  return result;
}

Buffer buffer_from_host(Device &device, nb::handle host, nb::object memory) {
  nb::object contiguous = nb::module_::import_("numpy").attr("asarray")(host, nb::arg("order") = "C");
  return make_buffer(device.shared_from_this(), contiguous, std::move(memory));
}

void bind_device(nb::module_ &module) {
  nb::class_<Device>(module, "Device", "A device that runs programs, with memory shared by one client's executables.")
      .def("memory_stats", [](const Device &self) { return stats_dict(self.allocator->stats()); })
      .def("reset_peak", [](const Device &self) { self.allocator->reset_peak(); })
      .def("trim", [](Device &self) { return without_gil([&] { return self.trim(); }); })
      .def("fail_allocation", [](const Device &self, int64_t k) { self.allocator->fail_allocation(k); },
           "Test hook: the k-th next allocation fails once; 0 switches it off.")
      .def("buffer_from_host", &buffer_from_host, nb::arg("array"), nb::arg("memory"));
  nb::class_<Processors, Device>(module, "Processors", "The processors of this machine, as threads.")
      // An owner of its own, which executables share; of an object in Python they would hold a reference to that, and
      // could not be released without Python's lock.
      .def(nb::new_([](int threads, int64_t memory_limit, int64_t cache_limit, bool guard_pages) {
             return std::make_shared<Processors>(threads, memory_limit, cache_limit, guard_pages);
           }),
           nb::arg("threads"), nb::arg("memory_limit"), nb::arg("cache_limit"), nb::arg("guard_pages"))
      .def_prop_ro("threads", [](const Processors &self) { return self.pool.size(); });
  module.def("default_device", [] { return default_device(); });
}

std::shared_ptr<Executable> load(std::shared_ptr<Device> device, const Header &header, const nb::object &object,
                                 const nb::object &device_code, const nb::object &constants, const nb::object &packed,
                                 int64_t memo_bytes, bool perf_map) {
  BufferBytes host(object), other(device_code), block(constants), forms(packed);
  using Owners = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  ConstantBlock owned{block.bytes().data(), static_cast<int64_t>(block.bytes().size()), block.owner(), forms.bytes()};
  if (!owned.packed.empty())
    owned.owner = std::make_shared<Owners>(block.owner(), forms.owner());
  return without_gil([&] {
    return std::make_shared<Executable>(std::move(device), header.program, ProgramCode{host.bytes(), other.bytes()},
                                        std::move(owned), memo_bytes, perf_map);
  });
}

nb::tuple plan_tuple(const PythonExecutable &self, const std::vector<int64_t> &symbols) {
  CallPlan plan = self.core()->plan_for(symbols);
  int64_t arena_bytes = 0;
  for (const auto &part : plan.parts)
    arena_bytes += part->arena_bytes;
  nb::list shapes;
  std::vector<int64_t> result_bytes;
  for (size_t leaf = 0; leaf < plan.results.size(); ++leaf) {
    shapes.append(shape_tuple(plan.results[leaf].shape, self.program().results[leaf].shape.size()));
    result_bytes.push_back(plan.results[leaf].bytes);
  }
  return nb::make_tuple(arena_bytes, nb::tuple(shapes), result_bytes);
}

} // namespace

void bind_executable(nb::module_ &module) {
  bind_device(module);
  nb::enum_<Output>(module, "Output")
      .value("automatic", Output::automatic)
      .value("numpy", Output::numpy)
      .value("jax", Output::jax)
      .value("buffer", Output::buffer);
  nb::class_<CommandTime>(module, "CommandTime", "Number of a command's runs, their time, and the way chosen for it.")
      .def_ro("calls", &CommandTime::calls)
      .def_ro("nanoseconds", &CommandTime::nanoseconds)
      .def_ro("way", &CommandTime::way);
  nb::class_<ArrayContents>(module, "Contents", "The contents that arrays had. Keeps the arrays.")
      .def("hold", &ArrayContents::hold, "True while the arrays hold the same.")
      .def_prop_ro("are_read", &ArrayContents::are_read, "True where hold() reads the memory of one of them.");
  nb::class_<PythonExecutable>(module, "Executable")
      .def("__init__",
           [](PythonExecutable *self, std::shared_ptr<Device> device, const Header &header, const nb::object &object,
              const nb::object &device_code, const nb::object &constants, const nb::object &packed,
              std::shared_ptr<Tree> in_tree, std::shared_ptr<Tree> out_tree, nb::object explain_structure, nb::object memory, nb::object jax_converter, nb::object key_array,
              int64_t memo_bytes, bool perf_map) {
             auto core = load(std::move(device), header, object, device_code, constants, packed, memo_bytes, perf_map);
             new (self) PythonExecutable(std::move(core), std::move(in_tree), std::move(out_tree),
                                         {std::move(explain_structure), std::move(memory), std::move(jax_converter),
                                          std::move(key_array)});
           },
           nb::arg("device"), nb::arg("header"), nb::arg("object"), nb::arg("device_code"), nb::arg("constants"),
           nb::arg("packed"), nb::arg("in_tree"), nb::arg("out_tree"), nb::arg("explain_structure"), nb::arg("memory"), nb::arg("jax_converter"),
           nb::arg("key_array"), nb::arg("memo_bytes"), nb::arg("perf_map"))
      .def("__call__", [](PythonExecutable &self, const nb::args &args,
                          const nb::kwargs &kwargs) { return self.call(args, kwargs, Output::automatic); })
      .def("execute", &PythonExecutable::call, nb::arg("args"), nb::arg("kwargs"), nb::arg("output"))
      .def("execute_sharded", &PythonExecutable::call_sharded, nb::arg("calls"), nb::arg("memories"), nb::arg("output"),
           nb::arg("on"), "One call on several devices at a time, and the results of each. `on`: the program on each device.")
      .def("profile", &PythonExecutable::profile, nb::arg("args"), nb::arg("kwargs"), "Time of each command of a call.")
      .def(
          "contents_of",
          [](const PythonExecutable &self, const std::vector<nb::object> &arrays, bool watch) {
            if (!self.core()->device()->is_host())
              throw Error(ErrorKind::device, "contents_of is for programs of the processor");
            Contents::By by = watch ? Contents::By::watch : Contents::By::fingerprint;
            return new ArrayContents(self.core()->pool(), arrays, by); // Python owns it
          },
          nb::arg("arrays"), nb::arg("watch"), nb::keep_alive<0, 1>(),
          "Present contents of contiguous arrays, for programs of the processor. `watch`: by watches of writes, where the "
          "kernel has them, instead of by fingerprints.")
      .def(
          "symbols_of",
          [](const PythonExecutable &self, const std::vector<int64_t> &dims) {
            return self.core()->plan(dims)->symbols;
          },
          nb::arg("dims"), "The values of the symbols for arguments with these sizes, which are those of all in order.")
      .def_prop_ro("code_bytes", [](const PythonExecutable &self) { return self.core()->code_bytes(); })
      .def("plan", &plan_tuple, nb::arg("symbols"), "(arena bytes, result shapes, result bytes) at symbol values.")
      .def(
          "prepare",
          [](const PythonExecutable &self, const std::vector<int64_t> &symbols) {
            without_gil([&] { self.core()->prepare(symbols); });
          },
          nb::arg("symbols"), "Gives memory to what a call at symbol values allocates.")
      .def("memo_symbols", [](const PythonExecutable &self) { return self.core()->memo_symbols(); },
           "Values of the symbols that are remembered, most recent first.")
      .def_prop_ro("memo_size", [](const PythonExecutable &self) { return self.core()->memo_size(); })
      .def_prop_ro("memo_bytes", [](const PythonExecutable &self) { return self.core()->memo_bytes(); })
      .def_prop_ro("function_names", [](const PythonExecutable &self) { return self.core()->function_names(); });
}

} // namespace disc
