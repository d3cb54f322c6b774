// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "numpy_api.h"

#include "arguments.h"
#include "buffer.h"
#include "core/error.h"
#include "program/argument_checks.h"
#include "python_scalar.h"
#include "without_gil.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

/// The element type that a format of the buffer protocol means: one character after an optional byte order. The size
/// of an 'l' depends on the byte order's mark, so the number of bytes decides.
std::optional<DType> dtype_of_format(const char *format, Py_ssize_t bytes) {
  std::string_view text(format ? format : "");
  if (!text.empty() && std::string_view("=@<").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  bool is_complex = text.size() == 2 && text[0] == 'Z';
  if (is_complex)
    text.remove_prefix(1);
  if (text.size() != 1)
    return std::nullopt;
  auto is_one_of = [&](std::string_view characters) { return characters.find(text[0]) != std::string_view::npos; };
  DLCode code = DLCode::floating;
  if (is_one_of("bhilq"))
    code = DLCode::integer;
  else if (is_one_of("BHILQ"))
    code = DLCode::unsigned_integer;
  else if (is_one_of("?"))
    code = DLCode::boolean;
  else if (!is_one_of("efd"))
    return std::nullopt;
  if (is_complex)
    code = DLCode::complex;
  for (const DTypeInfo &entry : kDTypes)
    if (entry.code == code && entry.bits == (code == DLCode::boolean ? 1 : bytes * 8))
      return entry.dtype;
  return std::nullopt;
}

} // namespace

ArgumentHooks &argument_hooks() {
  static auto *hooks = new ArgumentHooks; // lives as long as the interpreter
  return *hooks;
}

Arguments::Arguments(const Program &program, Device &device, const std::vector<PyObject *> &leaves,
                     const Arguments *bound)
    : Arguments(program, device, leaves.size() + (bound ? bound->views_.size() : 0)) {
  if (bound) {
    std::copy(bound->views_.begin(), bound->views_.end(), views_.begin());
    dims_.insert(dims_.end(), bound->dims_.begin(), bound->dims_.end());
    any_jax_ = bound->any_jax_, any_jax_on_device_ = bound->any_jax_on_device_;
    any_foreign_ = bound->any_foreign_;
    added_ = bound->views_.size();
  }
  for (PyObject *leaf : leaves)
    add(leaf);
}

Arguments::Arguments(const Program &program, Device &device, size_t count)
    : program_(program), device_(device), views_(count), scalars_(count) {
  dims_.reserve(program.argument_dims);
  for (size_t i = 0; i < count; ++i)
    views_[i].dtype = program_.arguments[i].dtype;
}

Arguments::~Arguments() { release_buffers(0); }

void Arguments::add(PyObject *leaf) {
  before_last_ = {owners_.size(), py_buffers_.size(), blocks_.size(), any_foreign_};
  describe(added_++, leaf);
}

void Arguments::forget_last() {
  views_[added_ - 1].data = nullptr;
  release_last();
}

void Arguments::keep_last(std::optional<size_t> same) {
  size_t index = added_ - 1;
  if (same) {
    views_[index] = views_[*same];
    return release_last();
  }
  std::shared_ptr<Block> copy = copy_of(index, shape_of(index), BlockKind::constant);
  if (any_foreign_ && !before_last_.foreign) { // its owner may free it as soon as it is released
    without_gil([&] { device_.record()->wait(); });
    any_foreign_ = false;
  }
  release_last();
  views_[index] = ArrayView();
  views_[index].data = static_cast<const char *>(copy->address());
  views_[index].device = device_.is_host() ? nullptr : &device_;
  views_[index].dtype = program_.arguments[index].dtype;
  blocks_.push_back(std::move(copy));
}

void Arguments::release_last() {
  owners_.resize(before_last_.owners);
  release_buffers(before_last_.buffers);
  blocks_.resize(before_last_.blocks);
}

void Arguments::release_buffers(size_t count) {
  for (; py_buffers_.size() > count; py_buffers_.pop_back())
    PyBuffer_Release(&py_buffers_.back());
}

void Arguments::describe(size_t index, PyObject *leaf) {
  if (PyArray_CheckExact(leaf))
    return describe_numpy(index, leaf);
  if (describe_buffer(index, leaf) || describe_jax(index, leaf) || describe_scalar(index, leaf))
    return;
  describe_other(index, leaf);
}

void Arguments::describe_numpy(size_t index, PyObject *leaf) {
  auto *array = reinterpret_cast<PyArrayObject *>(leaf);
  PyArray_Descr *descr = PyArray_DESCR(array);
  std::optional<DType> dtype = dtype_of(descr);
  check_dtype(index, dtype, nb::handle(reinterpret_cast<PyObject *>(descr)));
  auto rank = static_cast<size_t>(PyArray_NDIM(array));
  add_dims(index, reinterpret_cast<const int64_t *>(PyArray_DIMS(array)), rank);
  ArrayView &view = views_[index];
  view.data = PyArray_BYTES(array);
  view.contiguous = PyArray_IS_C_CONTIGUOUS(array);
  view.byte_swapped = PyArray_ISBYTESWAPPED(array);
  if (!view.contiguous)
    view.strides.assign(PyArray_STRIDES(array), PyArray_STRIDES(array) + rank);
  owners_.push_back(nb::borrow(leaf));
}

bool Arguments::describe_buffer(size_t index, PyObject *leaf) {
  if (!nb::isinstance<Buffer>(nb::handle(leaf)))
    return false;
  const auto &buffer = nb::cast<const Buffer &>(nb::handle(leaf));
  const std::shared_ptr<Block> &block = buffer.block();
  check_dtype(index, buffer.dtype(), nb::handle());
  add_dims(index, buffer.shape().data(), buffer.shape().size());
  views_[index].data = static_cast<const char *>(block->address());
  views_[index].device = buffer.device().get();
  blocks_.push_back(block);
  return true;
}

/// Holding the array's Python buffer keeps its memory from being donated or deleted while the program runs.
bool Arguments::describe_jax(size_t index, PyObject *leaf) {
  if (reinterpret_cast<PyObject *>(Py_TYPE(leaf)) != argument_hooks().jax_array_type.ptr())
    return false;
  any_jax_ = true;
  Py_buffer buffer;
  if (PyObject_GetBuffer(leaf, &buffer, PyBUF_RECORDS_RO) == 0) {
    py_buffers_.push_back(buffer);
    if (std::optional<DType> dtype = dtype_of_format(buffer.format, buffer.itemsize)) {
      auto rank = static_cast<size_t>(buffer.ndim);
      const auto *shape = reinterpret_cast<const int64_t *>(buffer.shape);
      const auto *strides = reinterpret_cast<const int64_t *>(buffer.strides);
      check_dtype(index, dtype, nb::handle());
      add_dims(index, shape, rank);
      ArrayView &view = views_[index];
      view.data = static_cast<const char *>(buffer.buf);
      view.contiguous = is_contiguous(shape, strides, rank, info(*dtype).size);
      if (!view.contiguous)
        view.strides.assign(strides, strides + rank);
      return true;
    }
  } else {
    // bfloat16, arrays on several devices, and deleted ones (whose own error comes from the conversion).
    PyErr_Clear();
  }
  if (describe_jax_on_device(index, leaf))
    return true;
  nb::object array = argument_hooks().jax_elements(nb::handle(leaf));
  if (!PyArray_Check(array.ptr()))
    return false;
  describe_numpy(index, array.ptr());
  return true;
}

bool Arguments::describe_scalar(size_t index, PyObject *leaf) {
  bool number = PyFloat_Check(leaf) || PyLong_Check(leaf) || PyComplex_Check(leaf);
  if (!number || PyArray_IsScalar(leaf, Generic)) // NumPy's numbers have a type of their own
    return false;
  const ArraySpec &spec = program_.arguments[index];
  if (!spec.shape.empty())
    fail_rank(spec, nullptr, 0);
  bool fits = !PyBool_Check(leaf) && (!PyComplex_Check(leaf) || info(spec.dtype).code == DLCode::complex);
  if (is_numpy_number(spec.dtype) && fits) {
    describe_by_numpy(index, leaf);
    return true;
  }
  std::string problem = store_python_scalar(leaf, spec.dtype, &scalars_[index]);
  if (!problem.empty())
    fail_dtype(index, problem);
  views_[index].data = reinterpret_cast<const char *>(&scalars_[index]);
  return true;
}

void Arguments::describe_by_numpy(size_t index, PyObject *number) {
  PyArray_Descr *descr = descr_of(program_.arguments[index].dtype);
  if (!descr)
    throw nb::python_error();
  nb::object array = nb::steal(PyArray_FromAny(number, descr, 0, 0, NPY_ARRAY_CARRAY, nullptr));
  if (!array.is_valid())
    throw nb::python_error();
  describe_numpy(index, array.ptr());
}

/// NumPy scalars, subclasses of its arrays, objects with __cuda_array_interface__, __dlpack__ or __array__, PRNG keys,
/// and arrays of a JAX that was loaded after the last call.
void Arguments::describe_other(size_t index, PyObject *leaf) {
  if (describe_array_interface(index, leaf))
    return;
  const ArraySpec &spec = program_.arguments[index];
  nb::object adapted = argument_hooks().adapt(nb::handle(leaf), spec.path.c_str(), spec.key.c_str());
  owners_.push_back(adapted);
  if (PyArray_Check(adapted.ptr()))
    return describe_numpy(index, adapted.ptr());
  if (describe_jax(index, adapted.ptr()))
    return;
  describe_dlpack(index, adapted);
}

void Arguments::check_dtype(size_t index, std::optional<DType> actual, nb::handle name) const {
  const ArraySpec &spec = program_.arguments[index];
  if (actual == spec.dtype)
    return;
  fail_dtype(index, actual ? std::string(info(*actual).numpy) : nb::str(name).c_str());
}

void Arguments::fail_dtype(size_t index, const std::string &called) const {
  disc::fail_dtype(program_.arguments[index], called);
}

void Arguments::add_dims(size_t index, const int64_t *shape, size_t rank) {
  check_shape(program_.arguments[index], shape, rank);
  dims_.insert(dims_.end(), shape, shape + rank);
}

/// Where the sizes of an argument are.
const int64_t *Arguments::shape_of(size_t index) const {
  const int64_t *shape = dims_.data();
  for (size_t i = 0; i < index; ++i)
    shape += program_.arguments[i].shape.size();
  return shape;
}

const void *Arguments::elements(size_t index) { return usable(index, shape_of(index)); }

void Arguments::addresses(void **out) {
  const int64_t *shape = dims_.data();
  for (size_t i = 0; i < views_.size(); ++i) {
    out[i] = usable(i, shape);
    shape += program_.arguments[i].shape.size();
  }
}

bool Arguments::is_usable(size_t index) const {
  const ArrayView &view = views_[index];
  if (device_.is_host())
    return view.usable_in_place() && !device_.allocator->guard_pages();
  constexpr uintptr_t alignment = 16; // what a kernel may read at once
  bool is_aligned = reinterpret_cast<uintptr_t>(view.data) % alignment == 0;
  return view.device == &device_ && view.contiguous && !view.byte_swapped && is_aligned;
}

/// The address of an argument's elements, or of their copy; null for one that was forgotten.
void *Arguments::usable(size_t index, const int64_t *shape) {
  const ArrayView &view = views_[index];
  if (view.data == nullptr || is_usable(index))
    return const_cast<char *>(view.data);
  blocks_.push_back(copy_of(index, shape, BlockKind::argument));
  return blocks_.back()->address();
}

/// The elements in C order, in the device's memory. Throws Error(shape), AllocationFailure, Error(type) for arrays on
/// another device.
std::shared_ptr<Block> Arguments::copy_of(size_t index, const int64_t *shape, BlockKind kind) const {
  const ArrayView &view = views_[index];
  const ArraySpec &spec = program_.arguments[index];
  if (view.device == &device_)
    return copy_on_device(index, shape, kind);
  if (view.device != nullptr)
    throw Error(ErrorKind::type, spec.path + " is on " + view.device->name() + ", and the program runs on " +
                                     device_.name() + ": copy it there, or to the host");
  int64_t bytes = byte_count(shape, spec.shape.size(), info(view.dtype).size);
  if (bytes < 0)
    throw Error(ErrorKind::shape, "The bytes of " + spec.path + " do not fit 64 bits.");
  auto block = std::make_shared<Block>(device_.allocator, bytes, kind);
  if (device_.is_host()) {
    copy_contiguous(view, shape, spec.shape.size(), static_cast<char *>(block->address()));
    return block;
  }
  std::vector<char> ordered(view.contiguous && !view.byte_swapped ? 0 : static_cast<size_t>(bytes));
  if (!ordered.empty())
    copy_contiguous(view, shape, spec.shape.size(), ordered.data());
  const char *source = ordered.empty() ? view.data : ordered.data();
  without_gil([&] { device_.write(block->address(), source, bytes); });
  return block;
}

/// The same for an array that lies on the device: it is put into order there, by one copy.
std::shared_ptr<Block> Arguments::copy_on_device(size_t index, const int64_t *shape, BlockKind kind) const {
  const ArrayView &view = views_[index];
  const ArraySpec &spec = program_.arguments[index];
  std::optional<Rows> rows = rows_of(view, shape, spec.shape.size());
  if (!rows)
    throw Error(ErrorKind::type, spec.path + " does not lie in rows of contiguous elements at one distance, which " +
                                     device_.name() + " could put into order by one copy: pass a contiguous array");
  auto block = std::make_shared<Block>(device_.allocator, rows->count * rows->bytes, kind);
  without_gil([&] { device_.copy_rows(block->address(), view.data, *rows); });
  return block;
}

} // namespace disc
