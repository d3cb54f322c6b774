// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Executables, their headers and their device, as Python sees them.
#include "contents.h"
#include "core/error.h"
#include "python_executable.h"
#include "python_reference.h"
#include "without_gil.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace disc {

namespace {

template <typename T> T field(const nb::dict &dict, const char *key) {
  if (!dict.contains(key))
    bad_artifact(std::string("header: '") + key + "' is missing");
  T value;
  if (!nb::try_cast<T>(dict[key], value))
    bad_artifact(std::string("header: '") + key + "' has a wrong type or range");
  return value;
}

ArraySpec array_spec(const nb::dict &dict) {
  ArraySpec spec;
  spec.path = field<std::string>(dict, "path");
  std::string dtype = field<std::string>(dict, "dtype");
  const DTypeInfo *known = dtype_named(dtype);
  if (!known)
    bad_artifact("header: unknown dtype '" + dtype + "'");
  spec.dtype = known->dtype;
  if (dict.contains("key"))
    spec.key = field<std::string>(dict, "key");
  if (dict.contains("memory"))
    spec.memory = field<std::string>(dict, "memory");
  if (dict.contains("layout"))
    spec.layout = field<std::vector<size_t>>(dict, "layout");
  spec.donated = dict.contains("donated") && field<bool>(dict, "donated");
  for (nb::handle dim : field<nb::list>(dict, "shape")) {
    DimSpec entry;
    entry.text = nb::str(dim).c_str();
    if (!nb::isinstance<nb::str>(dim) && (!nb::try_cast<int64_t>(dim, entry.size) || entry.size < 0))
      bad_artifact("header: '" + entry.text + "' is not a dimension of " + spec.path);
    spec.shape.push_back(std::move(entry));
  }
  return spec;
}

std::vector<ArraySpec> array_specs(const nb::dict &header, const char *key) {
  std::vector<ArraySpec> specs;
  for (const nb::dict &entry : field<std::vector<nb::dict>>(header, key))
    specs.push_back(array_spec(entry));
  return specs;
}

SymbolSpec symbol_spec(const nb::dict &dict) {
  SymbolSpec spec;
  spec.name = field<std::string>(dict, "name");
  spec.minimum = field<int64_t>(dict, "min");
  if (dict.contains("max") && !nb::object(dict["max"]).is_none())
    spec.maximum = field<int64_t>(dict, "max");
  nb::dict solve = field<nb::dict>(dict, "solve");
  spec.argument = field<size_t>(solve, "argument");
  spec.dim = field<size_t>(solve, "dim");
  spec.scale = field<int64_t>(solve, "scale");
  spec.offset = field<int64_t>(solve, "offset");
  return spec;
}

CheckSpec check_spec(const nb::dict &dict) {
  return {field<std::string>(dict, "kind"), field<std::string>(dict, "message"),
          field<std::vector<size_t>>(dict, "operands")};
}

/// A program of one segment does not say which results it writes: all, `results` in number.
SegmentSpec segment_spec(const nb::dict &dict, size_t results) {
  SegmentSpec spec;
  for (const nb::dict &entry : field<std::vector<nb::dict>>(dict, "checks"))
    spec.checks.push_back(check_spec(entry));
  spec.plan_words = field<size_t>(dict, "plan_words");
  nb::dict entry = field<nb::dict>(dict, "entry");
  spec.plan_entry = field<std::string>(entry, "plan");
  spec.run_entry = field<std::string>(entry, "run");
  if (dict.contains("results_written")) {
    spec.results = field<std::vector<size_t>>(dict, "results_written");
    spec.symbols_read = field<std::vector<nb::dict>>(dict, "symbols_read").size();
    return spec;
  }
  for (size_t leaf = 0; leaf < results; ++leaf)
    spec.results.push_back(leaf);
  return spec;
}

std::vector<CallTensorSpec> call_tensors(const nb::dict &dict, const char *key) {
  std::vector<CallTensorSpec> specs;
  for (const nb::dict &entry : field<std::vector<nb::dict>>(dict, key)) {
    specs.push_back({field<std::string>(entry, "dtype"), field<int64_t>(entry, "rank")});
    if (specs.back().rank < 0)
      bad_artifact("header: a tensor of a library call has a negative rank");
  }
  return specs;
}

CallAttribute call_attribute(const nb::dict &dict) {
  CallAttribute attribute{field<std::string>(dict, "name"), field<std::string>(dict, "dtype"),
                          field<bool>(dict, "array"), 0, {}};
  store_values(attribute, field<std::vector<std::string>>(dict, "values"));
  return attribute;
}

CustomSpec custom_spec(const nb::dict &dict, const CallSpec &call) {
  CustomSpec spec;
  for (const nb::dict &entry : field<std::vector<nb::dict>>(dict, "attributes"))
    spec.attributes.push_back(call_attribute(entry));
  spec.aliases = field<std::vector<std::pair<size_t, size_t>>>(dict, "aliases");
  for (auto [result, operand] : spec.aliases)
    if (result + 1 >= call.results.size() || operand >= call.operands.size())
      bad_artifact("header: an alias of '" + call.target + "' names a tensor that it does not have");
  return spec;
}

CallSpec call_spec(const nb::dict &dict) {
  CallSpec spec;
  spec.target = field<std::string>(dict, "target");
  spec.operands = call_tensors(dict, "operands");
  spec.results = call_tensors(dict, "results");
  if (spec.results.empty())
    bad_artifact("header: a library call has no results");
  if (dict.contains("custom"))
    spec.custom = custom_spec(field<nb::dict>(dict, "custom"), spec);
  if (dict.contains("groups"))
    spec.groups = field<std::vector<std::vector<int64_t>>>(dict, "groups");
  if (dict.contains("where"))
    spec.where = field<std::string>(dict, "where");
  for (auto [name, value] : field<nb::dict>(dict, "attributes")) {
    int64_t number = 0;
    if (!nb::try_cast<int64_t>(value, number))
      bad_artifact("header: an attribute of the library call '" + spec.target + "' is not an integer");
    spec.attributes.emplace_back(nb::cast<std::string>(name), number);
  }
  return spec;
}

KernelSpec kernel_spec(const nb::dict &dict) {
  KernelSpec spec;
  spec.name = field<std::string>(dict, "name");
  spec.threads = field<int64_t>(dict, "threads");
  spec.where = field<std::string>(dict, "where");
  if (dict.contains("fusion"))
    spec.fusion = field<std::string>(dict, "fusion");
  if (dict.contains("by_maps")) {
    auto by_maps = field<nb::dict>(dict, "by_maps");
    spec.by_maps = {field<std::string>(by_maps, "name"),
                    field<int64_t>(by_maps, "threads"),
                    field<int64_t>(by_maps, "shared_bytes"),
                    field<int64_t>(by_maps, "element_bytes"),
                    field<int64_t>(by_maps, "box_rows"),
                    field<int64_t>(by_maps, "box_columns"),
                    field<int64_t>(by_maps, "lhs_depth_inside") != 0,
                    field<int64_t>(by_maps, "rhs_depth_inside") != 0};
  }
  return spec;
}

PackSpec pack_spec(const nb::dict &dict) {
  PackSpec spec;
  spec.buffer = field<size_t>(dict, "buffer");
  const DTypeInfo *dtype = dtype_named(field<std::string>(dict, "dtype"));
  if (dtype == nullptr)
    bad_artifact("header: a packed form has an unknown element type");
  spec.dtype = dtype->dtype;
  spec.format = field<int64_t>(dict, "format");
  spec.k = field<int64_t>(dict, "k");
  spec.n = field<int64_t>(dict, "n");
  spec.k_stride = field<int64_t>(dict, "k_stride");
  spec.n_stride = field<int64_t>(dict, "n_stride");
  spec.columns = field<int64_t>(dict, "columns");
  return spec;
}

Program parse_program(const nb::dict &header) {
  Program program;
  program.name = field<std::string>(header, "name");
  for (const nb::dict &entry : field<std::vector<nb::dict>>(header, "symbols"))
    program.symbols.push_back(symbol_spec(entry));
  program.arguments = array_specs(header, "arguments");
  program.results = array_specs(header, "results");
  for (const nb::dict &entry : field<std::vector<nb::dict>>(header, "constants"))
    program.constants.push_back({field<int64_t>(entry, "offset"), field<int64_t>(entry, "bytes")});
  program.segments.push_back(segment_spec(header, program.results.size()));
  if (header.contains("segments"))
    for (const nb::dict &entry : field<std::vector<nb::dict>>(header, "segments"))
      program.segments.push_back(segment_spec(entry, 0));
  if (header.contains("calls"))
    for (const nb::dict &entry : field<std::vector<nb::dict>>(header, "calls"))
      program.calls.push_back(call_spec(entry));
  if (header.contains("kernels"))
    for (const nb::dict &entry : field<std::vector<nb::dict>>(header, "kernels"))
      program.kernels.push_back(kernel_spec(entry));
  if (header.contains("packs")) {
    for (const nb::dict &entry : field<std::vector<nb::dict>>(header, "packs"))
      program.packs.push_back(pack_spec(entry));
    program.packed_only = field<std::vector<size_t>>(header, "packed_only");
  }
  return program;
}

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
  nb::class_<Device>(module, "Device", "Where programs run, and its memory, shared by the executables of one client.")
      .def("memory_stats", [](const Device &self) { return stats_dict(self.allocator->stats()); })
      .def("reset_peak", [](const Device &self) { self.allocator->reset_peak(); })
      .def("trim", [](Device &self) { return without_gil([&] { return self.trim(); }); })
      .def("fail_allocation", [](const Device &self, int64_t k) { self.allocator->fail_allocation(k); },
           "Test hook: the k-th next allocation fails once; 0 switches it off.")
      .def("buffer_from_host", &buffer_from_host, nb::arg("array"), nb::arg("memory"));
  nb::class_<Processors, Device>(module, "Processors", "The processors of this machine, as threads.")
      // An owner of its own, which executables share; of an object in Python they would hold a reference to that, and
      // could not be let go of without Python's lock.
      .def(nb::new_([](int threads, int64_t memory_limit, int64_t cache_limit, bool guard_pages) {
             return std::make_shared<Processors>(threads, memory_limit, cache_limit, guard_pages);
           }),
           nb::arg("threads"), nb::arg("memory_limit"), nb::arg("cache_limit"), nb::arg("guard_pages"))
      .def_prop_ro("threads", [](const Processors &self) { return self.pool.size(); });
  module.def("default_device", [] { return default_device(); });
}

/// The bytes of any object with a buffer.
ConstantBlock constants_of(const nb::object &constants) {
  nb::object view = nb::steal(PyMemoryView_FromObject(constants.ptr()));
  if (!view.is_valid())
    throw nb::python_error();
  const Py_buffer &bytes = *PyMemoryView_GET_BUFFER(view.ptr());
  if (!PyBuffer_IsContiguous(&bytes, 'C'))
    bad_artifact("the constants are not contiguous");
  return {static_cast<const char *>(bytes.buf), bytes.len, shared_reference(std::move(view))};
}

std::shared_ptr<Executable> load(std::shared_ptr<Device> device, const nb::dict &header, const nb::bytes &object,
                                 const nb::bytes &device_code, const nb::object &constants, int64_t memo_bytes,
                                 bool perf_map) {
  Program program = parse_program(header);
  ConstantBlock block = constants_of(constants);
  ProgramCode code{{object.c_str(), object.size()}, {device_code.c_str(), device_code.size()}};
  return without_gil([&] {
    return std::make_shared<Executable>(std::move(device), std::move(program), code, std::move(block), memo_bytes,
                                        perf_map);
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
  nb::class_<CommandTime>(module, "CommandTime", "How often a command ran, for how long, and the way chosen for it.")
      .def_ro("calls", &CommandTime::calls)
      .def_ro("nanoseconds", &CommandTime::nanoseconds)
      .def_ro("way", &CommandTime::way);
  nb::class_<Contents>(module, "Contents", "What arrays held.")
      .def("__eq__", [](const Contents &self, const Contents &other) { return self == other; }, nb::is_operator());
  nb::class_<PythonExecutable>(module, "Executable")
      .def("__init__",
           [](PythonExecutable *self, std::shared_ptr<Device> device, const nb::dict &header, const nb::bytes &object,
              const nb::bytes &device_code, const nb::object &constants, std::shared_ptr<Tree> in_tree, std::shared_ptr<Tree> out_tree,
              nb::object explain_structure, nb::object memory, nb::object jax_converter, nb::object key_array,
              int64_t memo_bytes, bool perf_map) {
             auto core = load(std::move(device), header, object, device_code, constants, memo_bytes, perf_map);
             new (self) PythonExecutable(std::move(core), std::move(in_tree), std::move(out_tree),
                                         {std::move(explain_structure), std::move(memory), std::move(jax_converter),
                                          std::move(key_array)});
           },
           nb::arg("device"), nb::arg("header"), nb::arg("object"), nb::arg("device_code"), nb::arg("constants"),
           nb::arg("in_tree"), nb::arg("out_tree"), nb::arg("explain_structure"), nb::arg("memory"), nb::arg("jax_converter"),
           nb::arg("key_array"), nb::arg("memo_bytes"), nb::arg("perf_map"))
      .def("__call__", [](PythonExecutable &self, const nb::args &args,
                          const nb::kwargs &kwargs) { return self.call(args, kwargs, Output::automatic); })
      .def("execute", &PythonExecutable::call, nb::arg("args"), nb::arg("kwargs"), nb::arg("output"))
      .def("execute_sharded", &PythonExecutable::call_sharded, nb::arg("calls"), nb::arg("memories"), nb::arg("output"),
           nb::arg("on"), "One call on several devices at a time, and the results of each. `on`: the program on each device.")
      .def("profile", &PythonExecutable::profile, nb::arg("args"), nb::arg("kwargs"), "What each command of a call took.")
      .def(
          "contents_of",
          [](const PythonExecutable &self, const std::vector<nb::object> &arrays) {
            if (!self.core()->device()->is_host())
              throw Error(ErrorKind::device, "contents_of is for programs of the processor");
            return Contents(self.core()->pool(), arrays);
          },
          nb::arg("arrays"), "What contiguous arrays hold now, by fingerprints; for programs of the processor.")
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
