// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA array interface, version 3 (https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html): Buffers on
// a GPU have it, and arguments that have it, and not DLPack, are read where they lie.
#include "numpy_api.h"

#include "arguments.h"
#include "buffer.h"
#include "core/error.h"
#include "without_gil.h"

#include <nanobind/stl/string.h>

namespace disc {

namespace {

constexpr int64_t kVersionWithStream = 3;

/// An entry of an interface. Throws Error(type) where it is missing or something else.
template <typename T> T entry(const nb::dict &interface, const char *key, const std::string &path) {
  T value{};
  if (!interface.contains(key) || !nb::try_cast<T>(interface[key], value))
    throw Error(ErrorKind::type, path + ": '" + key + "' of its __cuda_array_interface__ is missing or of a wrong type");
  return value;
}

bool has(const nb::dict &interface, const char *key) {
  return interface.contains(key) && !nb::object(interface[key]).is_none();
}

std::vector<int64_t> sizes(const nb::dict &interface, const char *key, const std::string &path) {
  auto given = entry<nb::tuple>(interface, key, path);
  std::vector<int64_t> found(nb::len(given));
  for (size_t i = 0; i < found.size(); ++i)
    if (!nb::try_cast<int64_t>(given[i], found[i]))
      throw Error(ErrorKind::type, path + ": '" + key + "' of its __cuda_array_interface__ is not of integers");
  return found;
}

/// NumPy's description of an element type, by its `typestr`.
nb::object descr_named(const std::string &typestr, const std::string &path) {
  nb::str text(typestr.c_str());
  PyArray_Descr *descr = nullptr;
  if (PyArray_DescrConverter(text.ptr(), &descr) == NPY_SUCCEED)
    return nb::steal(reinterpret_cast<PyObject *>(descr));
  PyErr_Clear();
  throw Error(ErrorKind::type, path + ": '" + typestr + "' of its __cuda_array_interface__ is no type of NumPy's");
}

/// Has the device wait for the work that an array may still be written by.
void wait_for_producer(Device &device, const nb::dict &interface, const std::string &path) {
  if (entry<int64_t>(interface, "version", path) < kVersionWithStream) // it does not say where that work is
    return without_gil([&] { device.wait_for_all(); });
  if (!has(interface, "stream"))
    return;
  auto stream = entry<uintptr_t>(interface, "stream", path);
  if (stream == 0)
    throw Error(ErrorKind::type, path + ": the stream of its __cuda_array_interface__ is 0, which may be either of two "
                                        "default streams: it is to be 1, 2, or the address of another one");
  without_gil([&] { device.wait_in_stream(reinterpret_cast<void *>(stream)); });
}

} // namespace

bool Arguments::describe_array_interface(size_t index, PyObject *leaf) {
  nb::handle object(leaf);
  if (device_.is_host() || !nb::hasattr(object, "__cuda_array_interface__") || nb::hasattr(object, "__dlpack__"))
    return false;
  const std::string &path = program_.arguments[index].path;
  nb::object given = object.attr("__cuda_array_interface__");
  nb::dict interface;
  if (!nb::try_cast<nb::dict>(given, interface))
    throw Error(ErrorKind::type, path + ": its __cuda_array_interface__ is no dict");
  if (has(interface, "mask"))
    throw Error(ErrorKind::type, path + " is a masked array, whose mask would be lost: pass its data and its mask");
  nb::object descr = descr_named(entry<std::string>(interface, "typestr", path), path);
  auto *type = reinterpret_cast<PyArray_Descr *>(descr.ptr());
  check_dtype(index, dtype_of(type), descr);
  std::vector<int64_t> shape = sizes(interface, "shape", path);
  add_dims(index, shape.data(), shape.size());
  auto data = entry<nb::tuple>(interface, "data", path);
  uintptr_t address = 0;
  if (nb::len(data) != 2 || !nb::try_cast<uintptr_t>(data[0], address))
    throw Error(ErrorKind::type, path + ": 'data' of its __cuda_array_interface__ is no address");

  ArrayView &view = views_[index];
  view.data = reinterpret_cast<const char *>(address);
  view.device = &device_;
  view.byte_swapped = !PyArray_ISNBO(type->byteorder);
  int64_t element = info(view.dtype).size;
  if (byte_count(shape.data(), shape.size(), element) != 0)
    check_owner(index, view.data);
  if (has(interface, "strides")) {
    view.strides = sizes(interface, "strides", path);
    if (view.strides.size() != shape.size())
      throw Error(ErrorKind::type, path + ": its __cuda_array_interface__ has not as many strides as dims");
    view.contiguous = is_contiguous(shape.data(), view.strides.data(), shape.size(), element);
  }
  wait_for_producer(device_, interface, path);
  any_foreign_ = true;
  owners_.push_back(nb::borrow(leaf));
  return true;
}

/// Refuses an address that is not the program's GPU's.
void Arguments::check_owner(size_t index, const void *data) const {
  std::optional<int32_t> owner = without_gil([&] { return device_.owner_of(data); });
  if (owner == device_.dlpack().device_id)
    return;
  throw Error(ErrorKind::type, program_.arguments[index].path + " is on " +
                                   (owner ? "GPU " + std::to_string(*owner) : "no GPU") + ", and the program runs on " +
                                   device_.name() + ": copy it there");
}

nb::dict array_interface(Buffer &buffer) {
  if (!buffer.device())
    throw nb::attribute_error("the buffer is not on a GPU");
  PyArray_Descr *descr = descr_of(buffer.dtype());
  nb::object type = descr ? nb::steal(reinterpret_cast<PyObject *>(descr)) : nb::object();
  if (!descr || PyTypeNum_ISUSERDEF(descr->type_num)) {
    PyErr_Clear();
    throw nb::attribute_error("the interface has no name for the element type: use DLPack");
  }
  buffer.lend();
  bool is_empty = buffer.byte_size() == 0;
  nb::dict found;
  found["shape"] = shape_tuple(buffer.shape().data(), buffer.shape().size());
  found["typestr"] = type.attr("str");
  found["data"] = nb::make_tuple(is_empty ? 0 : reinterpret_cast<uintptr_t>(buffer.block()->address()), true);
  found["strides"] = nb::none();
  found["version"] = kVersionWithStream;
  found["stream"] = buffer.is_ready() ? nb::object(nb::none())
                                      : nb::cast(reinterpret_cast<uintptr_t>(buffer.device()->stream()));
  return found;
}

} // namespace disc
