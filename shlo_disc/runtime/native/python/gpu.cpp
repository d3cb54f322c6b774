// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu.h"

#include "core/error.h"
#include "cuda/gpu_device.h"
#include "cuda/gpu_run.h"
#include "cuda/fft_library.h"
#include "cuda/solver_library.h"
#include "cuda/nccl_library.h"
#include "without_gil.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace disc {

namespace nb = nanobind;

namespace {

using cuda::Gpu;

nb::dict launch_stats(const cuda::GpuDevice &device) {
  cuda::LaunchCounts counts = device.launch_counts();
  nb::dict found;
  found["runs"] = counts.runs;
  found["commands"] = counts.commands;
  found["replays"] = counts.replays;
  found["captures"] = counts.captures;
  found["graph_failures"] = counts.failures;
  found["graphs"] = counts.graphs;
  found["graph_commands"] = counts.graph_commands;
  return found;
}

nb::dict facts_of(const Gpu &gpu) {
  const cuda::GpuFacts &facts = gpu.facts();
  nb::dict found;
  found["name"] = facts.name;
  found["compute_capability"] = nb::make_tuple(facts.major, facts.minor);
  found["multiprocessors"] = facts.multiprocessors;
  found["memory"] = facts.memory;
  found["shared_memory"] = facts.shared_memory;
  found["registers"] = facts.registers;
  found["cache"] = facts.cache;
  return found;
}

cuda::Address allocate(const Gpu &gpu, int64_t bytes) {
  if (bytes < 0)
    throw AllocationFailure(bytes, "the size is negative");
  cuda::Address address = without_gil([&] { return gpu.allocate(static_cast<size_t>(bytes)); });
  if (address == 0)
    throw AllocationFailure(bytes, "GPU " + std::to_string(gpu.ordinal()) + " has too little memory left");
  return address;
}

void write(const Gpu &gpu, cuda::Address to, nb::handle source) {
  Py_buffer view;
  if (PyObject_GetBuffer(source.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0)
    throw nb::python_error();
  try {
    without_gil([&] { gpu.write(to, view.buf, static_cast<size_t>(view.len)); });
  } catch (...) {
    PyBuffer_Release(&view);
    throw;
  }
  PyBuffer_Release(&view);
}

nb::bytes read(const Gpu &gpu, cuda::Address from, int64_t bytes) {
  std::string data(static_cast<size_t>(bytes), '\0');
  without_gil([&] { gpu.read(data.data(), from, data.size()); });
  return nb::bytes(data.data(), data.size());
}

using Sizes = std::array<unsigned, 3>;

void launch(const Gpu &gpu, const cuda::Kernel &kernel, Sizes grid, Sizes block, unsigned shared_bytes,
            const std::vector<int64_t> &words) {
  without_gil([&] { gpu.launch(kernel, {grid, block, shared_bytes}, words); });
}

void bind_memory_of_gpu(nb::class_<Gpu> &gpu) {
  gpu.def_prop_ro("free_memory", [](const Gpu &self) { return without_gil([&] { return self.free_memory(); }); })
      .def("allocate", &allocate, nb::arg("bytes"), "The address of fresh memory.")
      .def("release", [](const Gpu &self, cuda::Address at) { without_gil([&] { self.release(at); }); })
      .def("write", &write, nb::arg("to"), nb::arg("source"), "Copy the bytes of a contiguous Python buffer.")
      .def("read", &read, nb::arg("address"), nb::arg("bytes"), "Bytes, once all work given before is done.")
      .def(
          "copy",
          [](const Gpu &self, cuda::Address to, cuda::Address from, size_t bytes) {
            without_gil([&] { self.copy(to, from, bytes); });
          },
          nb::arg("to"), nb::arg("address"), nb::arg("bytes"))
      .def(
          "fill",
          [](const Gpu &self, cuda::Address to, uint8_t byte, size_t bytes) {
            without_gil([&] { self.fill(to, byte, bytes); });
          },
          nb::arg("to"), nb::arg("byte"), nb::arg("bytes"));
}

} // namespace

void bind_gpu(nb::module_ &module) {
  module.def(
      "open_nccl", [](const std::vector<std::string> &names) { without_gil([&] { cuda::NcclLibrary::open(names); }); },
      nb::arg("names"), "Open NCCL, by paths and names that it may be found by; once.");
  module.def(
      "open_fft", [](const std::vector<std::string> &names) { without_gil([&] { cuda::FftLibrary::open(names); }); },
      nb::arg("names"), "Open cuFFT, by paths and names that it may be found by; once.");
  module.def(
      "open_solver",
      [](const std::vector<std::string> &solver, const std::vector<std::string> &blas) {
        without_gil([&] {
          cuda::SolverLibrary::open(solver); // whose package brings cuBLAS
          cuda::CublasLibrary::open(blas);
        });
      },
      nb::arg("solver"), nb::arg("blas"),
      "Open cuSOLVER and cuBLAS, each by paths and names that it may be found by; once.");
  module.def(
      "destroy_nccl_groups", [] { return without_gil([] { return cuda::GpuRun::forget(); }); },
      "Destroy the communicators of all groups of GPUs; how many groups there were.");
  nb::class_<cuda::Event>(module, "GpuEvent", "A point in a GPU's stream of work.")
      .def("is_done", [](const cuda::Event &self) { return without_gil([&] { return self.is_done(); }); })
      .def("wait", [](const cuda::Event &self) { without_gil([&] { self.wait(); }); });
  nb::class_<cuda::Kernel>(module, "GpuKernel", "A kernel of a GpuModule.")
      .def_ro("name", &cuda::Kernel::name);
  nb::class_<Gpu> gpu(module, "Gpu", "One GPU of this machine, and its stream of work.");
  gpu.def_static("count", [] { return without_gil([] { return Gpu::count(); }); })
      .def_static("get", [](int ordinal) { return without_gil([&] { return Gpu::get(ordinal); }); })
      .def_prop_ro("ordinal", &Gpu::ordinal)
      .def_prop_ro("facts", &facts_of)
      .def("launch", &launch, nb::arg("kernel"), nb::arg("grid"), nb::arg("block"), nb::arg("shared_bytes"),
           nb::arg("words"))
      .def("record", [](const Gpu &self) { return without_gil([&] { return self.record(); }); })
      .def("wait", [](const Gpu &self) { without_gil([&] { self.wait(); }); });
  bind_memory_of_gpu(gpu);
  nb::class_<cuda::GpuDevice, Device>(module, "GpuDevice", "A GPU as a device of programs.")
      .def(nb::new_([](int ordinal, int64_t memory_limit, int64_t cache_limit, std::vector<std::string> blas_names,
                       bool may_use_tf32, std::optional<bool> fuses_products, int64_t graphs) {
             return without_gil([&] {
               return std::make_shared<cuda::GpuDevice>(Gpu::get(ordinal), memory_limit, cache_limit,
                                                        std::move(blas_names), may_use_tf32, fuses_products, graphs);
             });
           }),
           nb::arg("ordinal"), nb::arg("memory_limit"), nb::arg("cache_limit"), nb::arg("blas_names"),
           nb::arg("may_use_tf32"), nb::arg("fuses_products").none(), nb::arg("graphs"))
      .def("launch_stats", &launch_stats, "Counts of the ways in which runs of programs were given to the GPU.")
      .def_prop_ro(
          "blas_version", [](cuda::GpuDevice &self) { return without_gil([&] { return self.blas().version(); }); },
          "cuBLASLt's, as it gives it; 0 where there is none.")
      .def_prop_ro("gpu", &cuda::GpuDevice::gpu);
  nb::class_<cuda::Module>(module, "GpuModule", "Code for a GPU: PTX, or a cubin.")
      .def("__init__",
           [](cuda::Module *self, std::shared_ptr<Gpu> on, const nb::bytes &image) {
             std::string text(image.c_str(), image.size());
             without_gil([&] { new (self) cuda::Module(std::move(on), text); });
           })
      .def(
          "kernel",
          [](const cuda::Module &self, const std::string &name, const std::string &where) {
            return without_gil([&] { return self.kernel(name, where); });
          },
          nb::arg("name"), nb::arg("where") = "", nb::keep_alive<0, 1>());
}

} // namespace disc
