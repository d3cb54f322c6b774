// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/available_memory.h"
#include "python/interruptible.h"
#include "python/numpy_api.h"

#include "python/arguments.h"
#include "kernels/blas.h"
#include "python/bound.h"
#include "python/buffer.h"
#include "python/gpu.h"
#include "python/jax_call.h"
#include "kernels/dot.h"
#include "core/error.h"
#include "program/executable.h"
#include "kernels/dot_batch.h"
#include "kernels/gemm_formats.h"
#include "kernels/packing.h"
#include "kernels/lapack.h"
#include "program/object_code.h"
#include "pjrt/client.h"
#include "pjrt/python/python_compiler.h"
#include "python/python_executable.h"
#include "python/tree.h"
#include "python/without_gil.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace disc {

namespace {

void raise_allocation(int64_t bytes, const char *message) {
  nb::object type = nb::module_::import_("shlo_disc.runtime.allocation").attr("AllocationError");
  nb::object error = type(bytes, message);
  PyErr_SetObject(type.ptr(), error.ptr());
}

/// One class of shlo_disc.errors for each kind; a wrong state (used after delete) is Python's RuntimeError.
void translate(const std::exception_ptr &pointer, void *) {
  try {
    std::rethrow_exception(pointer);
  } catch (const AllocationFailure &failure) {
    raise_allocation(failure.bytes, failure.what());
  } catch (const std::bad_alloc &) { // of the core's own tables
    raise_allocation(-1, "out of memory");
  } catch (const pjrt::Failure &error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const pjrt::Unreadable &error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const Error &error) {
    const char *name = class_name(error.kind);
    nb::object type = name ? nb::module_::import_("shlo_disc.errors").attr(name) : nb::borrow(PyExc_RuntimeError);
    PyErr_SetString(type.ptr(), error.what());
  }
}

void bind_tree(nb::module_ &module) {
  nb::enum_<Tree::Kind>(module, "TreeKind")
      .value("leaf", Tree::Kind::leaf)
      .value("none", Tree::Kind::none)
      .value("tuple", Tree::Kind::tuple)
      .value("list", Tree::Kind::list)
      .value("dict", Tree::Kind::dict)
      .value("named_tuple", Tree::Kind::named_tuple)
      .value("custom", Tree::Kind::custom);
  nb::class_<Tree>(module, "Tree")
      .def(nb::init<Tree::Kind, std::vector<std::shared_ptr<Tree>>, nb::object>(), nb::arg("kind"),
           nb::arg("children"), nb::arg("detail").none())
      .def(
          "flatten",
          [](const Tree &self, const nb::tuple &items) -> nb::object {
            std::vector<PyObject *> leaves;
            std::vector<nb::object> owners, found;
            if (!self.flatten(items.ptr(), leaves, owners))
              return nb::none();
            for (PyObject *leaf : leaves)
              found.push_back(nb::borrow(leaf));
            return nb::cast(std::move(found));
          },
          nb::arg("items"), "The leaves of a tuple with this structure; None where it has another one.")
      .def(
          "unflatten",
          [](const Tree &self, std::vector<nb::object> leaves) {
            if (leaves.size() != self.leaves())
              throw nb::value_error("wrong number of leaves");
            nb::object *next = leaves.data();
            return self.unflatten(next);
          },
          nb::arg("leaves"))
      .def_prop_ro("leaves", &Tree::leaves);
}

/// What both faces of the runtime say of the devices of this machine.
void bind_topology(nb::module_ &module) {
  nb::class_<PJRT_TopologyDescription>(module, "Topology")
      .def("__init__", [](PJRT_TopologyDescription *self, int64_t device_count) {
        new (self) PJRT_TopologyDescription({pjrt::checked_device_count(device_count)}, false);
      })
      .def_static("deserialize", [](const nb::bytes &serialized) {
        return std::make_shared<PJRT_TopologyDescription>(std::string_view(serialized.c_str(), serialized.size()));
      })
      .def("serialize", [](const PJRT_TopologyDescription &self) {
        std::string text = self.serialized();
        return nb::bytes(text.data(), text.size());
      })
      .def_prop_ro("device_count", [](const PJRT_TopologyDescription &self) { return self.devices.size(); })
      .def_prop_ro("fingerprint", &PJRT_TopologyDescription::fingerprint)
      .def_prop_ro_static("memory_kinds", [](nb::handle) {
        return std::vector<std::string>(std::begin(pjrt::kMemoryKinds), std::end(pjrt::kMemoryKinds));
      });
}

void *capsule_address(nb::handle capsule) {
  void *address = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
  if (!address)
    throw nb::python_error();
  return address;
}

void install_blas(nb::handle sgemm, nb::handle dgemm, nb::handle sgemv, nb::handle dgemv) {
  Blas::instance().install(capsule_address(sgemm), capsule_address(dgemm), capsule_address(sgemv),
                           capsule_address(dgemv));
}

/// `functions`: name -> capsule.
void install_lapack(const nb::dict &functions) {
  std::unordered_map<std::string, void *> addresses;
  for (auto [name, capsule] : functions)
    addresses.emplace(nb::cast<std::string>(name), capsule_address(capsule));
  Lapack::instance().install(std::move(addresses));
}

DiscDot dot_of(const std::vector<int64_t> &words) {
  DiscDot dot{};
  size_t bytes = words.size() * sizeof(int64_t);
  if (bytes != offsetof(DiscDot, next) && bytes != sizeof dot)
    throw nb::value_error("wrong number of words");
  std::memcpy(&dot, words.data(), bytes);
  return dot;
}

/// A dot by the addresses and numbers of its 34 words, or 41 with an epilogue, in the order of DiscDot; for tests and
/// measurements.
void dot_words(Processors &device, const std::vector<int64_t> &words) {
  DiscDot dot = dot_of(words);
  without_gil([&] { run_dot(device.pool, dot); });
}

/// Packs the right-hand side of a dot given as for `dot_words` to `target`; returns the number of words.
int64_t pack_words(Processors &device, const std::vector<int64_t> &words, uintptr_t target) {
  DiscDot dot = dot_of(words);
  if (target != 0)
    pack_right(device.pool, dot, reinterpret_cast<void *>(target));
  return packed_words(entries_of(dot), gemm::format_of(dot.format).words(dot.k), dot.n, dot.tile_columns);
}

void bind_code(nb::module_ &module) {
  nb::class_<ObjectCode>(module, "ObjectCode", "An object file placed in memory.")
      .def("__init__",
           [](ObjectCode *self, const nb::bytes &bytes) {
             new (self) ObjectCode(std::string_view(bytes.c_str(), bytes.size()));
           })
      .def("function", [](const ObjectCode &self,
                          const std::string &name) { return reinterpret_cast<uintptr_t>(self.function(name)); })
      .def("write_perf_map", &ObjectCode::write_perf_map)
      .def_prop_ro("function_names", &ObjectCode::function_names)
      .def_prop_ro("mapped_bytes", &ObjectCode::mapped_bytes);
  module.def("dot", &dot_words);
  module.def("pack_right", &pack_words);
}

} // namespace

} // namespace disc

NB_MODULE(_native, module) {
  using namespace disc;
  if (!import_numpy())
    throw nb::python_error();
  nb::set_leak_warnings(false); // JAX's caches keep programs until the process ends, and are not cleared before
  nb::register_exception_translator(translate);
  bind_tree(module);
  bind_topology(module);
  bind_buffer(module);
  bind_artifact(module);
  bind_executable(module);
  bind_bound_executable(module);
  bind_code(module);
  bind_programs(module);
  bind_gpu(module);
  bind_jax_call(module);
  module.def("available_memory", &available_memory, "Bytes that the system and the control groups have left.");
  module.def("install_blas", &install_blas);
  module.def("install_lapack", &install_lapack);
  module.def("lapack_names", &Lapack::names, "The functions that `install_lapack` needs.");
  module.def("register_custom_call", [](const std::string &target, uintptr_t function, bool is_ffi) {
    register_custom_call(target, reinterpret_cast<void *>(function), is_ffi ? Convention::ffi : Convention::c);
  });
  module.def("set_main_thread", &set_main_thread, "The thread whose runs signals may interrupt.");
  module.def("blas_controls_threads", [] { return Blas::instance().controls_threads(); });
  module.def("set_extension_dtype", [](const std::string &name, nb::handle descr) {
    const DTypeInfo *known = dtype_named(name);
    if (!known || !PyArray_DescrCheck(descr.ptr()))
      throw nb::type_error("expected the name of a dtype and a NumPy dtype");
    set_extension_dtype(known->dtype, reinterpret_cast<PyArray_Descr *>(descr.ptr()));
  });
  module.def("set_jax_elements", [](nb::object function) { argument_hooks().jax_elements = std::move(function); });
  module.def("set_adapt", [](nb::object adapt) { argument_hooks().adapt = std::move(adapt); });
  module.def("set_jax_array_type", [](nb::object type) { argument_hooks().jax_array_type = std::move(type); });
}
