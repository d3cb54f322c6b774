// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "numpy_api.h"

#include "core/array_view.h"
#include "buffer.h"
#include "core/dlpack.h"
#include "core/error.h"
#include "program/processors.h"
#include "without_gil.h"

namespace disc {

namespace {

constexpr intptr_t kNobodyWaits = -1; // of the array API standard's numbers of streams

/// Waits for what others have given to a GPU, without Python's lock if this thread has it.
void wait_for_others(Device &device) noexcept {
  auto wait = [&device] {
    try {
      device.wait_for_all();
    } catch (const Error &) {
      // The memory is gone with the context.
    }
  };
  if (Py_IsInitialized() && PyGILState_Check())
    without_gil(wait);
  else
    wait();
}

/// A share of memory for others: what they have given to a GPU may still read it when they release it, and the next
/// call would write it.
std::shared_ptr<Block> lent_block(std::shared_ptr<Block> block, const std::shared_ptr<Device> &device) {
  if (!device)
    return block;
  Block *memory = block.get();
  return {memory, [block = std::move(block), device](Block *) { wait_for_others(*device); }};
}

/// What a DLPack capsule owns: the tensor, its shape, and a share of the memory.
template <typename Managed> struct Export {
  Managed managed{};
  std::vector<int64_t> shape;
  std::shared_ptr<Block> block;
};

template <typename Managed> void destroy_unclaimed(PyObject *capsule, const char *name) {
  // A consumer renames the capsule and calls the deleter itself.
  if (!PyCapsule_IsValid(capsule, name))
    return;
  auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <typename Managed>
Managed *make_export(std::shared_ptr<Block> block, DType dtype, const std::vector<int64_t> &shape,
                     const std::shared_ptr<Device> &device) {
  auto *owner = new Export<Managed>{{}, shape, lent_block(std::move(block), device)};
  Managed &managed = owner->managed;
  DLTensor &tensor = managed.dl_tensor;
  tensor.data = owner->block->address();
  tensor.device = device ? device->dlpack() : DLDevice{kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(owner->shape.size());
  const DTypeInfo &type = info(dtype);
  tensor.dtype = {static_cast<uint8_t>(type.code), static_cast<uint8_t>(type.size * 8), 1};
  tensor.shape = owner->shape.data();
  managed.manager_ctx = owner;
  managed.deleter = [](Managed *self) { delete static_cast<Export<Managed> *>(self->manager_ctx); };
  return &managed;
}

nb::object steal_or_throw(PyObject *object) {
  if (!object)
    throw nb::python_error();
  return nb::steal(object);
}

nb::object to_array(const Buffer &buffer, nb::handle dtype, nb::handle copy) {
  nb::object array = numpy_array(buffer.host_block(), buffer.dtype(), buffer.shape().data(), buffer.shape().size());
  // Several arrays may share the buffer, whose elements are promised not to change.
  PyArray_CLEARFLAGS(reinterpret_cast<PyArrayObject *>(array.ptr()), NPY_ARRAY_WRITEABLE);
  if (dtype.is_none() && copy.ptr() != Py_True)
    return array;
  if (dtype.is_none())
    return array.attr("copy")();
  nb::object same = nb::bool_(array.attr("dtype").equal(dtype));
  if (copy.ptr() == Py_False && same.ptr() != Py_True)
    throw nb::value_error("a conversion of the dtype needs a copy");
  return array.attr("astype")(dtype, nb::arg("copy") = copy.ptr() == Py_True);
}

} // namespace

const std::shared_ptr<Block> &Buffer::block() const {
  if (!block_)
    throw Error(ErrorKind::state, "the buffer has been deleted");
  return block_;
}

void Buffer::lend() {
  if (!lent_)
    lent_ = block_ = lent_block(block(), device_);
}

int64_t Buffer::byte_size() const { return byte_count(shape_.data(), shape_.size(), info(dtype_).size); }

Buffer Buffer::in_memory(nb::object memory) const {
  Buffer same(*this);
  (void)block();
  same.memory_ = std::move(memory);
  return same;
}

void Buffer::wait() const {
  (void)block();
  if (ready_)
    without_gil([&] { ready_->wait(); });
}

bool Buffer::is_ready() const {
  (void)block();
  return !ready_ || without_gil([&] { return ready_->is_done(); });
}

std::shared_ptr<Block> Buffer::host_block() const {
  if (!device_)
    return block();
  auto copy = std::make_shared<Block>(default_device()->allocator, byte_size(), BlockKind::result);
  std::shared_ptr<Block> source = block();
  without_gil([&] { device_->read(copy->address(), source->address(), copy->bytes()); });
  return copy;
}

/// As the array API standard has it for CUDA: a consumer's stream waits, or nobody does where it is -1. Where it is not
/// told, which stands for a default stream of one kind or another, everything is there before this returns.
void Buffer::wait_for_consumer(nb::handle stream) const {
  if (!ready_ || stream.is_none())
    return wait();
  (void)block();
  auto told = nb::cast<intptr_t>(stream);
  if (told == kNobodyWaits)
    return;
  if (told == 0 || told < kNobodyWaits)
    throw nb::value_error("__dlpack__: a stream of a GPU is 1, 2, the address of another one, or -1 for none that waits");
  without_gil([&] { ready_->wait_in_stream(reinterpret_cast<void *>(told)); });
}

nb::object Buffer::dlpack(bool versioned, nb::handle stream) const {
  wait_for_consumer(stream);
  if (!info(dtype_).has_dlpack())
    throw nb::buffer_error("DLPack packs elements of less than a byte, which this buffer does not");
  if (!versioned) {
    auto *managed = make_export<DLManagedTensor>(block(), dtype_, shape_, device_);
    return steal_or_throw(PyCapsule_New(managed, "dltensor", [](PyObject *capsule) {
      destroy_unclaimed<DLManagedTensor>(capsule, "dltensor");
    }));
  }
  auto *managed = make_export<DLManagedTensorVersioned>(block(), dtype_, shape_, device_);
  managed->version = {1, 0};
  managed->flags = kDLReadOnly;
  return steal_or_throw(PyCapsule_New(managed, "dltensor_versioned", [](PyObject *capsule) {
    destroy_unclaimed<DLManagedTensorVersioned>(capsule, "dltensor_versioned");
  }));
}

nb::object numpy_array(std::shared_ptr<Block> block, DType dtype, const int64_t *shape, size_t rank) {
  PyArray_Descr *descr = descr_of(dtype);
  if (!descr)
    throw nb::python_error();
  void *data = block->address();
  nb::object array = steal_or_throw(PyArray_NewFromDescr(
      &PyArray_Type, descr, static_cast<int>(rank), const_cast<npy_intp *>(reinterpret_cast<const npy_intp *>(shape)),
      nullptr, data, NPY_ARRAY_CARRAY, nullptr));
  auto *share = new std::shared_ptr<Block>(std::move(block));
  PyObject *owner = PyCapsule_New(share, nullptr, [](PyObject *capsule) {
    delete static_cast<std::shared_ptr<Block> *>(PyCapsule_GetPointer(capsule, nullptr));
  });
  if (!owner) {
    delete share;
    throw nb::python_error();
  }
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject *>(array.ptr()), owner) != 0)
    throw nb::python_error();
  return array;
}

Buffer make_buffer(const std::shared_ptr<Device> &device, nb::handle host, nb::object memory) {
  if (!PyArray_Check(host.ptr()) || !PyArray_IS_C_CONTIGUOUS(reinterpret_cast<PyArrayObject *>(host.ptr())))
    throw nb::type_error("expected a C-contiguous NumPy array");
  auto *array = reinterpret_cast<PyArrayObject *>(host.ptr());
  std::optional<DType> dtype = dtype_of(PyArray_DESCR(array));
  if (!dtype)
    throw Error(ErrorKind::type, "no program takes elements of type " + nb::cast<std::string>(nb::str(nb::object(host.attr("dtype")))));
  ArrayView view;
  view.data = PyArray_BYTES(array);
  view.dtype = *dtype;
  view.byte_swapped = PyArray_ISBYTESWAPPED(array);
  std::vector<int64_t> shape(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
  auto block = std::make_shared<Block>(device->allocator, PyArray_NBYTES(array), BlockKind::result);
  if (device->is_host()) {
    copy_contiguous(view, shape.data(), shape.size(), static_cast<char *>(block->address()));
    return {std::move(block), *dtype, std::move(shape), std::move(memory), device};
  }
  std::vector<char> ordered(view.byte_swapped ? static_cast<size_t>(block->bytes()) : 0);
  if (view.byte_swapped)
    copy_contiguous(view, shape.data(), shape.size(), ordered.data());
  const char *source = view.byte_swapped ? ordered.data() : view.data;
  without_gil([&] { device->write(block->address(), source, block->bytes()); });
  return {std::move(block), *dtype, std::move(shape), std::move(memory), device, device->record()};
}

nb::tuple shape_tuple(const int64_t *shape, size_t rank) {
  nb::object result = steal_or_throw(PyTuple_New(static_cast<Py_ssize_t>(rank)));
  for (size_t i = 0; i < rank; ++i) {
    PyObject *dim = PyLong_FromLongLong(shape[i]);
    if (!dim)
      throw nb::python_error();
    PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), dim);
  }
  return nb::borrow<nb::tuple>(result);
}

void bind_buffer(nb::module_ &module) {
  nb::class_<Buffer>(module, "Buffer", nb::is_weak_referenceable(), "An array in the memory of a device. Its elements never change.")
      .def_prop_ro("shape", [](const Buffer &self) { return shape_tuple(self.shape().data(), self.shape().size()); })
      .def_prop_ro("dtype", [](const Buffer &self) {
        return steal_or_throw(reinterpret_cast<PyObject *>(descr_of(self.dtype())));
      })
      .def_prop_ro("memory", &Buffer::memory, "The Memory that holds it.")
      .def_prop_ro("device", [](const Buffer &self) { return self.memory().attr("device"); })
      .def(
          "copy_to_memory",
          [](const Buffer &self, nb::object memory) { return self.in_memory(std::move(memory)); },
          nb::arg("memory"),
          "The same elements in another Memory. All kinds are memory of this machine, so nothing is copied.")
      .def("on_device_size_in_bytes", &Buffer::byte_size)
      .def("delete", &Buffer::remove, "Releases the memory; arrays made from it earlier keep their part.")
      .def("is_deleted", &Buffer::is_deleted)
      .def("is_ready", &Buffer::is_ready,
           "True if the elements are ready: always on the CPU, where a call has ended when it returns a Buffer.")
      .def("ready_event",
           [](nb::handle self) {
             const auto &buffer = nb::cast<const Buffer &>(self);
             (void)buffer.block();
             nb::module_ events = nb::module_::import_("shlo_disc.runtime.event");
             return buffer.device() ? events.attr("device_event")(self) : events.attr("ready_event")();
           },
           "An Event that completes when the elements are ready.")
      .def("block_until_ready",
           [](nb::handle self) {
             nb::cast<const Buffer &>(self).wait();
             return nb::borrow(self);
           })
      .def("to_host", [](const Buffer &self) { return to_array(self, nb::none(), nb::bool_(true)); },
           "A copy as a NumPy array.")
      .def("__array__", &to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def(
          "__dlpack__",
          [](const Buffer &self, nb::handle stream, nb::handle max_version, nb::handle, nb::handle copy) {
            if (copy.ptr() == Py_True)
              throw nb::buffer_error("the buffer is shared without a copy; use to_host() for one");
            bool versioned = PyTuple_Check(max_version.ptr()) && nb::len(max_version) == 2 &&
                             nb::cast<int>(max_version[0]) >= 1;
            return self.dlpack(versioned, stream);
          },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def_prop_ro("__cuda_array_interface__", &array_interface)
      .def("__dlpack_device__",
           [](const Buffer &self) {
             DLDevice device = self.device() ? self.device()->dlpack() : DLDevice{kDLCPU, 0};
             return nb::make_tuple(device.device_type, device.device_id);
           })
      .def("__len__", [](const Buffer &self) {
        if (self.shape().empty())
          throw nb::type_error("len() of an array without dimensions");
        return self.shape()[0];
      });
}

} // namespace disc
