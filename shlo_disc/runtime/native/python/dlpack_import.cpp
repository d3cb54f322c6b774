// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.h"
#include "core/error.h"

namespace disc {

namespace {

std::optional<DType> dtype_of(DLDataType type) {
  if (type.lanes != 1)
    return std::nullopt;
  for (const DTypeInfo &entry : kDTypes)
    if (static_cast<uint8_t>(entry.code) == type.code && entry.has_dlpack() && entry.size * 8 == type.bits)
      return entry.dtype;
  return std::nullopt;
}

std::string type_text(DLDataType type) {
  return "the DLPack type (code " + std::to_string(type.code) + ", " + std::to_string(type.bits) + " bits, " +
         std::to_string(type.lanes) + " lanes)";
}

/// Takes a tensor over from its capsule: a capsule whose owner keeps the pointer until the call is over.
template <typename Managed> nb::object claim(nb::handle capsule, const char *name, const char *used_name) {
  auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed || PyCapsule_SetName(capsule.ptr(), used_name) != 0)
    throw nb::python_error();
  return nb::steal(PyCapsule_New(managed, nullptr, [](PyObject *owner) {
    auto *tensor = static_cast<Managed *>(PyCapsule_GetPointer(owner, nullptr));
    if (tensor->deleter)
      tensor->deleter(tensor);
  }));
}

/// Asks for version 1, which has a way to say that a tensor is read-only; older libraries do not know the question.
/// `stream`: in which a producer on a GPU has to order its work before ours; null for arrays on the host.
nb::object capsule_of(nb::handle leaf, void *stream) {
  nb::object waits = stream ? nb::object(nb::int_(reinterpret_cast<intptr_t>(stream))) : nb::none();
  nb::tuple version = nb::make_tuple(1, 0);
  try {
    return stream ? leaf.attr("__dlpack__")(nb::arg("stream") = waits, nb::arg("max_version") = version)
                  : leaf.attr("__dlpack__")(nb::arg("max_version") = version);
  } catch (const nb::python_error &error) {
    if (!error.matches(PyExc_TypeError))
      throw;
  }
  return stream ? leaf.attr("__dlpack__")(nb::arg("stream") = waits) : leaf.attr("__dlpack__")();
}

} // namespace

void Arguments::describe_dlpack(size_t index, nb::handle leaf) {
  nb::tuple device = nb::cast<nb::tuple>(leaf.attr("__dlpack_device__")());
  check_dlpack_device(index, {nb::cast<int32_t>(device[0]), nb::cast<int32_t>(device[1])});
  bool is_on_host = nb::cast<int32_t>(device[0]) == kDLCPU;
  nb::object capsule = capsule_of(leaf, is_on_host ? nullptr : device_.stream());
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    nb::object owner = claim<DLManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
    owners_.push_back(owner);
    auto *managed = static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(owner.ptr(), nullptr));
    if (managed->version.major != 1)
      throw Error(ErrorKind::type, program_.arguments[index].path + " comes in an unknown version of DLPack");
    return describe_tensor(index, managed->dl_tensor);
  }
  nb::object owner = claim<DLManagedTensor>(capsule, "dltensor", "used_dltensor");
  owners_.push_back(owner);
  describe_tensor(index, static_cast<DLManagedTensor *>(PyCapsule_GetPointer(owner.ptr(), nullptr))->dl_tensor);
}

/// Takes a jax.Array that lies on the program's GPU where it is; false for others, which come through the host.
bool Arguments::describe_jax_on_device(size_t index, nb::handle leaf) {
  if (device_.is_host() || program_.arguments[index].dtype > DType::c128) // JAX exports none of the small types
    return false;
  DLDevice own = device_.dlpack();
  try {
    nb::tuple device = nb::cast<nb::tuple>(leaf.attr("__dlpack_device__")());
    if (nb::cast<int32_t>(device[0]) != own.device_type || nb::cast<int32_t>(device[1]) != own.device_id)
      return false;
  } catch (const nb::python_error &) {
    return false; // on several devices, or deleted, which the conversion says
  }
  describe_dlpack(index, leaf);
  return any_jax_on_device_ = true;
}

/// Arrays on the host come from anywhere, those on a GPU are taken where they are.
void Arguments::check_dlpack_device(size_t index, DLDevice device) const {
  DLDevice own = device_.dlpack();
  if (device.device_type == kDLCPU || (device.device_type == own.device_type && device.device_id == own.device_id))
    return;
  throw Error(ErrorKind::type, program_.arguments[index].path + " is on another device than " + device_.name());
}

void Arguments::describe_tensor(size_t index, const DLTensor &tensor) {
  check_dlpack_device(index, tensor.device);
  std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype)
    fail_dtype(index, type_text(tensor.dtype));
  check_dtype(index, dtype, nb::handle());
  auto rank = static_cast<size_t>(tensor.ndim);
  add_dims(index, tensor.shape, rank);
  ArrayView &view = views_[index];
  view.data = static_cast<const char *>(tensor.data) + tensor.byte_offset;
  if (tensor.device.device_type != kDLCPU)
    view.device = &device_, any_foreign_ = true;
  if (!tensor.strides)
    return;
  for (size_t i = 0; i < rank; ++i)
    view.strides.push_back(tensor.strides[i] * info(*dtype).size);
  view.contiguous = is_contiguous(tensor.shape, view.strides.data(), rank, info(*dtype).size);
}

} // namespace disc
