// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays of the host made into buffers, and buffers made into arrays of the host.
#include "buffer.h"
#include "client.h"
#include "types.h"

#include <cstring>

namespace disc::pjrt {

namespace {

constexpr uintptr_t kSharedAlignment = 64; // what kernels read fastest, and what XLA asks for as well
constexpr int64_t kSharedBytes = 16 << 10;  // the copy of fewer takes less than a microsecond

/// Where a caller's array lies. Its elements may be in any order, and each other apart.
ArrayView view_of(const PJRT_Client_BufferFromHostBuffer_Args &args, DType dtype, Sizes dims) {
  ArrayView view;
  view.data = static_cast<const char *>(args.data);
  view.dtype = dtype;
  if (args.num_byte_strides == 0)
    return view;
  if (args.num_byte_strides != dims.size())
    fail_argument("a host array has not as many strides as dimensions");
  std::span<const int64_t> strides = given(args.byte_strides, args.num_byte_strides, "byte_strides");
  view.contiguous = is_contiguous(dims.data(), strides.data(), dims.size(), info(dtype).size);
  if (!view.contiguous)
    view.strides.assign(strides.begin(), strides.end());
  return view;
}

/// Calls that read shared memory are waited for, so that it is worth it for large arrays only.
bool can_share(const PJRT_Client_BufferFromHostBuffer_Args &args, const OrderedElements &elements, int64_t bytes) {
  bool may = args.host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy ||
             args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  return may && bytes >= kSharedBytes && elements.is_contiguous() &&
         reinterpret_cast<uintptr_t>(args.data) % kSharedAlignment == 0;
}

/// Elements of the host's, which may be changed afterwards, written to a place in the order of a layout.
void write_elements(disc::Device &place, void *to, const char *data, int64_t bytes, const OrderedElements &elements) {
  if (place.is_host())
    return elements.copy_to(to);
  if (bytes == 0)
    return;
  if (elements.is_contiguous())
    return place.write(to, data, bytes);
  std::vector<char> ordered(static_cast<size_t>(bytes));
  elements.copy_to(ordered.data());
  place.write(to, ordered.data(), bytes);
}

void buffer_from_host(PJRT_Client_BufferFromHostBuffer_Args &args) {
  given(args.client, "client");
  PJRT_Memory &memory = chosen_memory(args.memory, args.device);
  DType dtype = dtype_of(args.type);
  Sizes dims = sizes_of(args.dims, args.num_dims);
  int64_t bytes = checked_bytes(dims, dtype);
  Layout &layout = stated_layout(args.device_layout, dims, info(dtype).size);
  if (bytes > 0)
    given(static_cast<const char *>(args.data), "data");
  OrderedElements elements(view_of(args, dtype, dims), dims, layout);
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  disc::Device &place = *memory.place;
  if (place.is_host() && can_share(args, elements, bytes)) {
    auto done = std::make_shared<Signal>();
    Storage storage(const_cast<void *>(args.data), [done](void *) { done->set(); });
    args.buffer = new PJRT_Buffer(std::move(storage), dtype, std::move(sizes), layout, &memory);
    args.done_with_host_buffer = event_of(std::move(done));
    return;
  }
  auto block = std::make_shared<Block>(place.allocator, bytes, BlockKind::result);
  write_elements(place, block->address(), static_cast<const char *>(args.data), bytes, elements);
  args.buffer = new PJRT_Buffer(Storage(std::move(block)), dtype, std::move(sizes), layout, &memory, nullptr,
                                signal_of_work(memory));
  args.done_with_host_buffer = ready_event();
}

/// Writes the elements densely in the order that the host asks for.
void buffer_to_host(PJRT_Buffer_ToHostBuffer_Args &args) {
  const PJRT_Buffer &buffer = given(args.src, "src");
  auto bytes = static_cast<size_t>(buffer.bytes());
  const Layout &order = stated_layout(args.host_layout, buffer.dims, info(buffer.dtype).size);
  if (!args.dst) {
    args.dst_size = bytes;
    return;
  }
  if (args.dst_size < bytes)
    fail_argument("the host array has " + std::to_string(args.dst_size) + " bytes, the buffer " +
                  std::to_string(bytes));
  if (!buffer.memory->place->is_host() && &order == &buffer.layout && bytes > 0) {
    args.event = event_of(buffer.memory->device->worker.signal_after(
        [elements = buffer.elements(), place = buffer.memory->place, to = args.dst, count = buffer.bytes()] {
          place->read(to, elements.get(), count);
        }));
    return;
  }
  std::shared_ptr<PJRT_Buffer> source = buffer.shared(); // the caller may delete its own before the end
  args.event = event_after(buffer, [source, &order, to = args.dst](const Storage &elements) {
    source->ordered(on_host(*source, elements), order).copy_to(to);
  });
}

void buffer_copy_raw_to_host(PJRT_Buffer_CopyRawToHost_Args &args) {
  const PJRT_Buffer &buffer = given(args.buffer, "buffer");
  int64_t bytes = buffer.bytes();
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > bytes || args.transfer_size > bytes - args.offset)
    fail_argument("the part to copy lies outside of the buffer");
  if (args.transfer_size > 0)
    given(static_cast<char *>(args.dst), "dst");
  args.event = event_after(buffer, [place = buffer.memory->place, to = args.dst, offset = args.offset,
                                    count = args.transfer_size](const Storage &elements) {
    if (count > 0)
      place->read(to, static_cast<const char *>(elements.get()) + offset, count);
  });
}

/// Memory of somebody else, used where it is until the last share of it is gone.
void view_of_device_buffer(PJRT_Client_CreateViewOfDeviceBuffer_Args &args) {
  given(args.client, "client");
  PJRT_Memory *given_memory = has_field(args, args.memory) ? args.memory : nullptr;
  PJRT_Memory &memory = chosen_memory(given_memory, args.device);
  DType dtype = dtype_of(args.element_type);
  Sizes dims = sizes_of(args.dims, args.num_dims);
  int64_t bytes = checked_bytes(dims, dtype);
  Layout &layout = stated_layout(args.layout, dims, info(dtype).size);
  if (bytes > 0)
    given(static_cast<char *>(args.device_buffer_ptr), "device_buffer_ptr");
  if (reinterpret_cast<uintptr_t>(args.device_buffer_ptr) % static_cast<uintptr_t>(info(dtype).alignment()) != 0)
    fail_argument("the array is not aligned as its elements are");
  if (args.stream != 0)
    memory.place->wait_in_stream(reinterpret_cast<void *>(args.stream));
  auto release = [place = memory.place, callback = args.on_delete_callback, argument = args.on_delete_callback_arg](void *address) {
    if (!callback)
      return;
    if (std::shared_ptr<const Event> work = place->record()) // it may still be read
      work->wait();
    callback(address, argument);
  };
  args.buffer = new PJRT_Buffer(Storage(args.device_buffer_ptr, release), dtype, {dims.begin(), dims.end()}, layout,
                                &memory);
}

void uninitialized_buffer(PJRT_Client_CreateUninitializedBuffer_Args &args) {
  given(args.client, "client");
  PJRT_Memory &memory = chosen_memory(args.memory, args.device);
  DType dtype = dtype_of(args.shape_element_type);
  Sizes dims = sizes_of(args.shape_dims, args.shape_num_dims);
  Layout &layout = stated_layout(args.shape_layout, dims, info(dtype).size);
  auto block = std::make_shared<Block>(memory.place->allocator, checked_bytes(dims, dtype), BlockKind::result);
  args.buffer = new PJRT_Buffer(Storage(std::move(block)), dtype, {dims.begin(), dims.end()}, layout,
                                &memory);
}

} // namespace

void add_host_buffer_functions(PJRT_Api &api) {
  api.PJRT_Client_BufferFromHostBuffer = entry<buffer_from_host>;
  api.PJRT_Buffer_ToHostBuffer = entry<buffer_to_host>;
  api.PJRT_Buffer_CopyRawToHost = entry<buffer_copy_raw_to_host>;
  api.PJRT_Client_CreateViewOfDeviceBuffer =
      entry_up_to<view_of_device_buffer, &PJRT_Client_CreateViewOfDeviceBuffer_Args::buffer>;
  api.PJRT_Client_CreateUninitializedBuffer = entry<uninitialized_buffer>;
}

} // namespace disc::pjrt
