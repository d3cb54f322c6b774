// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "buffer.h"

#include "program/processors.h"
#include "types.h"

using disc::pjrt::Storage;

Storage PJRT_Buffer::share() const {
  std::lock_guard lock(mutex_);
  if (is_deleted_)
    disc::pjrt::fail_argument("the buffer has been deleted or donated");
  return storage_;
}

Storage PJRT_Buffer::elements() const {
  Storage storage = share();
  if (ready)
    ready->check();
  return storage;
}

void *PJRT_Buffer::expose() {
  Storage storage = elements();
  storage.add_viewer();
  clear_forms();
  return storage.get();
}

disc::pjrt::OrderedElements PJRT_Buffer::ordered(const Storage &elements, const disc::pjrt::Layout &order) const {
  disc::ArrayView view;
  view.data = static_cast<const char *>(elements.get());
  view.dtype = dtype;
  view.contiguous = layout.is_row_major;
  if (!view.contiguous)
    view.strides = disc::pjrt::strides_of(layout, dims, disc::info(dtype).size);
  return {std::move(view), dims, order};
}

std::unique_ptr<PJRT_Buffer> PJRT_Buffer::shared() const {
  return std::make_unique<PJRT_Buffer>(share(), dtype, dims, layout, memory, ready, done);
}

std::shared_ptr<disc::pjrt::ArrayForms> PJRT_Buffer::forms() {
  std::lock_guard lock(mutex_);
  if (!forms_)
    forms_ = std::make_shared<disc::pjrt::ArrayForms>();
  return forms_;
}

/// Also for calls that have not begun yet, which share them.
void PJRT_Buffer::clear_forms() {
  std::shared_ptr<disc::pjrt::ArrayForms> cleared;
  {
    std::lock_guard lock(mutex_);
    cleared = forms_;
  }
  if (cleared)
    cleared->clear();
}

void PJRT_Buffer::remove() {
  clear_forms();
  Storage released; // without the lock: what waits for it may do anything
  std::lock_guard lock(mutex_);
  is_deleted_ = true;
  if (external_references_ == 0)
    released.swap(storage_);
}

bool PJRT_Buffer::is_deleted() const {
  std::lock_guard lock(mutex_);
  return is_deleted_;
}

void PJRT_Buffer::add_external_reference() {
  {
    std::lock_guard lock(mutex_);
    if (is_deleted_)
      disc::pjrt::fail_argument("the buffer has been deleted or donated");
    ++external_references_;
    storage_.add_viewer();
  }
  clear_forms();
}

void PJRT_Buffer::drop_external_reference() {
  Storage released;
  std::lock_guard lock(mutex_);
  if (external_references_ == 0)
    throw disc::pjrt::Failure(PJRT_Error_Code_FAILED_PRECONDITION, "the buffer has no external reference");
  storage_.drop_viewer();
  if (--external_references_ == 0 && is_deleted_)
    released.swap(storage_);
}

namespace disc::pjrt {

int64_t checked_bytes(Sizes dims, DType dtype) {
  for (int64_t size : dims)
    if (size < 0)
      fail_argument("an array has the negative size " + std::to_string(size));
  int64_t bytes = byte_count(dims.data(), dims.size(), info(dtype).size);
  if (bytes < 0)
    fail_argument("the bytes of an array do not fit 64 bits");
  return bytes;
}

PJRT_Memory &chosen_memory(PJRT_Memory *memory, PJRT_Device *device) {
  return memory ? *memory : *given(device, "device").default_memory();
}

Storage moved(const Storage &elements, int64_t bytes, disc::Device &from, disc::Device &to) {
  if (&from == &to || (from.is_host() && to.is_host()))
    return elements;
  if (!from.is_host() && !to.is_host()) // by way of the machine's memory, which every pair of GPUs can
    return moved(moved(elements, bytes, from, *default_device()), bytes, *default_device(), to);
  auto block = std::make_shared<Block>(to.allocator, bytes, BlockKind::result);
  if (bytes > 0 && from.is_host())
    to.write(block->address(), elements.get(), bytes);
  else if (bytes > 0)
    from.read(block->address(), elements.get(), bytes);
  return Storage(std::move(block));
}

Storage on_host(const PJRT_Buffer &buffer, const Storage &elements) {
  if (buffer.memory->place->is_host())
    return elements;
  return moved(elements, buffer.bytes(), *buffer.memory->place, *default_device());
}

PJRT_Event *event_after(const PJRT_Buffer &buffer, std::function<void(const Storage &)> task) {
  Storage storage = buffer.share();
  if (!buffer.ready || buffer.ready->has_succeeded()) {
    task(storage);
    return ready_event();
  }
  auto done = std::make_shared<Signal>();
  buffer.ready->then([done, storage, task = std::move(task)](const std::optional<Failure> &failure) {
    done->set(failure ? failure : failure_of([&] { task(storage); }));
  });
  return event_of(done);
}

std::shared_ptr<Signal> signal_of_work(PJRT_Memory &memory) {
  return memory.device->worker.signal_of(memory.place->record());
}

namespace {

PJRT_Buffer &buffer_of(PJRT_Buffer *buffer) { return given(buffer, "buffer"); }

void buffer_destroy(PJRT_Buffer_Destroy_Args &args) { delete args.buffer; }

void buffer_element_type(PJRT_Buffer_ElementType_Args &args) {
  args.type = buffer_type_of(buffer_of(args.buffer).dtype);
}

void buffer_dimensions(PJRT_Buffer_Dimensions_Args &args) {
  args.dims = buffer_of(args.buffer).dims.data();
  args.num_dims = args.buffer->dims.size();
}

void buffer_unpadded_dimensions(PJRT_Buffer_UnpaddedDimensions_Args &args) {
  args.unpadded_dims = buffer_of(args.buffer).dims.data();
  args.num_dims = args.buffer->dims.size();
}

void buffer_dynamic_dimension_indices(PJRT_Buffer_DynamicDimensionIndices_Args &args) {
  buffer_of(args.buffer);
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void buffer_get_memory_layout(PJRT_Buffer_GetMemoryLayout_Args &args) {
  const Layout &layout = buffer_of(args.buffer).layout;
  args.layout = {};
  args.layout.struct_size = sizeof args.layout;
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.tiled.struct_size = sizeof args.layout.tiled;
  args.layout.tiled.minor_to_major = layout.minor_to_major.data();
  args.layout.tiled.minor_to_major_size = layout.minor_to_major.size();
}

void buffer_on_device_size(PJRT_Buffer_OnDeviceSizeInBytes_Args &args) {
  args.on_device_size_in_bytes = static_cast<size_t>(buffer_of(args.buffer).bytes());
}

void buffer_device(PJRT_Buffer_Device_Args &args) { args.device = buffer_of(args.buffer).memory->device; }
void buffer_memory(PJRT_Buffer_Memory_Args &args) { args.memory = buffer_of(args.buffer).memory; }
void buffer_delete(PJRT_Buffer_Delete_Args &args) { buffer_of(args.buffer).remove(); }
void buffer_is_deleted(PJRT_Buffer_IsDeleted_Args &args) { args.is_deleted = buffer_of(args.buffer).is_deleted(); }

void buffer_is_on_cpu(PJRT_Buffer_IsOnCpu_Args &args) {
  args.is_on_cpu = buffer_of(args.buffer).memory->place->is_host();
}

void buffer_ready_event(PJRT_Buffer_ReadyEvent_Args &args) {
  const PJRT_Buffer &buffer = buffer_of(args.buffer);
  const std::shared_ptr<Signal> &signal = buffer.done ? buffer.done : buffer.ready;
  args.event = signal ? event_of(signal) : ready_event();
}

void buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args &args) {
  args.buffer_pointer = reinterpret_cast<uintptr_t>(buffer_of(args.buffer).expose());
}

void buffer_increase_references(PJRT_Buffer_IncreaseExternalReferenceCount_Args &args) {
  buffer_of(args.buffer).add_external_reference();
}

void buffer_decrease_references(PJRT_Buffer_DecreaseExternalReferenceCount_Args &args) {
  buffer_of(args.buffer).drop_external_reference();
}

void buffer_opaque_pointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args &args) {
  args.device_memory_ptr = buffer_of(args.buffer).elements().get();
}

/// Elements never change, so that a copy can share them where the memory is the same.
PJRT_Buffer *shared_copy(const PJRT_Buffer &buffer, PJRT_Memory *memory) {
  disc::Device &from = *buffer.memory->place, &to = *memory->place;
  if (&from != &to) {
    Storage copy = moved(buffer.elements(), buffer.bytes(), from, to);
    return new PJRT_Buffer(std::move(copy), buffer.dtype, buffer.dims, buffer.layout, memory, nullptr,
                           signal_of_work(*memory));
  }
  return new PJRT_Buffer(buffer.share(), buffer.dtype, buffer.dims, buffer.layout, memory, buffer.ready,
                         buffer.done);
}

void buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args &args) {
  args.dst_buffer = shared_copy(buffer_of(args.buffer), given(args.dst_device, "dst_device").default_memory());
}

void buffer_copy_to_memory(PJRT_Buffer_CopyToMemory_Args &args) {
  args.dst_buffer = shared_copy(buffer_of(args.buffer), &given(args.dst_memory, "dst_memory"));
}

void buffer_bitcast(PJRT_Buffer_Bitcast_Args &args) {
  const PJRT_Buffer &buffer = buffer_of(args.buffer);
  DType dtype = dtype_of(args.element_type);
  Sizes dims = sizes_of(args.dims, args.num_dims);
  Layout &layout = stated_layout(args.device_layout, dims, info(dtype).size);
  if (checked_bytes(dims, dtype) != buffer.bytes())
    fail_argument("a bitcast changes the number of bytes");
  args.out_buffer =
      new PJRT_Buffer(buffer.share(), dtype, {dims.begin(), dims.end()}, layout, buffer.memory, buffer.ready,
                      buffer.done);
}

} // namespace

void add_buffer_functions(PJRT_Api &api) {
  api.PJRT_Buffer_Destroy = entry<buffer_destroy>;
  api.PJRT_Buffer_ElementType = entry<buffer_element_type>;
  api.PJRT_Buffer_Dimensions = entry<buffer_dimensions>;
  api.PJRT_Buffer_UnpaddedDimensions = entry<buffer_unpadded_dimensions>;
  api.PJRT_Buffer_DynamicDimensionIndices = entry<buffer_dynamic_dimension_indices>;
  api.PJRT_Buffer_GetMemoryLayout = entry<buffer_get_memory_layout>;
  api.PJRT_Buffer_OnDeviceSizeInBytes = entry<buffer_on_device_size>;
  api.PJRT_Buffer_Device = entry<buffer_device>;
  api.PJRT_Buffer_Memory = entry<buffer_memory>;
  api.PJRT_Buffer_Delete = entry<buffer_delete>;
  api.PJRT_Buffer_IsDeleted = entry<buffer_is_deleted>;
  api.PJRT_Buffer_IsOnCpu = entry<buffer_is_on_cpu>;
  api.PJRT_Buffer_ReadyEvent = entry<buffer_ready_event>;
  api.PJRT_Buffer_UnsafePointer = entry<buffer_unsafe_pointer>;
  api.PJRT_Buffer_IncreaseExternalReferenceCount = entry<buffer_increase_references>;
  api.PJRT_Buffer_DecreaseExternalReferenceCount = entry<buffer_decrease_references>;
  api.PJRT_Buffer_OpaqueDeviceMemoryDataPointer = entry<buffer_opaque_pointer>;
  api.PJRT_Buffer_CopyToDevice = entry<buffer_copy_to_device>;
  api.PJRT_Buffer_CopyToMemory = entry<buffer_copy_to_memory>;
  api.PJRT_Buffer_Bitcast = entry<buffer_bitcast>;
}

} // namespace disc::pjrt
