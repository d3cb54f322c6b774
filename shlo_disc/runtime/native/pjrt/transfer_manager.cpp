// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers that exist before their elements do, filled piece by piece.
#include "buffer.h"
#include "client.h"
#include "types.h"

#include <cstring>

struct PJRT_AsyncHostToDeviceTransferManager {
  /// A buffer to be; the transfers and the buffer share its memory.
  struct Part {
    disc::DType dtype;
    std::vector<int64_t> dims;
    disc::pjrt::Layout *layout;
    int64_t bytes;
    disc::pjrt::Storage storage;
    std::shared_ptr<disc::pjrt::Signal> ready = std::make_shared<disc::pjrt::Signal>();
  };

  PJRT_Memory *memory;
  std::vector<Part> parts;

  Part &part(int32_t index) {
    if (index < 0 || static_cast<size_t>(index) >= parts.size())
      disc::pjrt::fail_argument("the transfer has no buffer " + std::to_string(index));
    return parts[static_cast<size_t>(index)];
  }
};

namespace disc::pjrt {

namespace {

PJRT_AsyncHostToDeviceTransferManager &manager_of(PJRT_AsyncHostToDeviceTransferManager *manager) {
  return given(manager, "transfer_manager");
}

void create_buffers(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args &args) {
  given(args.client, "client");
  auto manager = std::make_unique<PJRT_AsyncHostToDeviceTransferManager>();
  manager->memory = &given(args.memory, "memory");
  std::span<PJRT_ShapeSpec> specs = given(args.shape_specs, args.num_shape_specs, "shape_specs");
  std::span layouts = given(args.device_layouts, args.num_device_layouts, "device_layouts");
  for (size_t i = 0; i < specs.size(); ++i) {
    const PJRT_ShapeSpec &spec = specs[i];
    Sizes dims = sizes_of(spec.dims, spec.num_dims);
    DType dtype = dtype_of(spec.element_type);
    int64_t bytes = checked_bytes(dims, dtype);
    const PJRT_Buffer_MemoryLayout *stated = i < layouts.size() ? layouts[i] : nullptr;
    Layout &layout = stated_layout(stated, dims, info(dtype).size);
    auto block = std::make_shared<Block>(manager->memory->place->allocator, bytes, BlockKind::result);
    manager->parts.push_back({dtype, {dims.begin(), dims.end()}, &layout, bytes, Storage(std::move(block))});
  }
  args.transfer_manager = manager.release();
}

/// Who waits for a buffer that will never be filled is told so.
void manager_destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args &args) {
  for (auto &part : manager_of(args.transfer_manager).parts)
    if (!part.ready->is_set())
      part.ready->set(Failure(PJRT_Error_Code_CANCELLED, "the transfer was given up before its last piece"));
  delete args.transfer_manager;
}

void transfer_data(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args &args) {
  auto &part = manager_of(args.transfer_manager).part(args.buffer_index);
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > part.bytes ||
      args.transfer_size > part.bytes - args.offset)
    fail_argument("the piece lies outside of the buffer");
  if (part.ready->is_set())
    throw Failure(PJRT_Error_Code_FAILED_PRECONDITION, "the buffer had its last piece before");
  if (args.transfer_size > 0)
    args.transfer_manager->memory->place->write(static_cast<char *>(part.storage.get()) + args.offset,
                                                &given(static_cast<const char *>(args.data), "data"),
                                                args.transfer_size);
  if (args.is_last_transfer)
    part.ready->set();
  args.done_with_h2d_transfer = ready_event();
}

void retrieve_buffer(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args &args) {
  auto &manager = manager_of(args.transfer_manager);
  const auto &part = manager.part(args.buffer_index);
  args.buffer_out = new PJRT_Buffer(part.storage, part.dtype, part.dims, *part.layout, manager.memory, part.ready);
}

void manager_device(PJRT_AsyncHostToDeviceTransferManager_Device_Args &args) {
  args.device_out = manager_of(args.transfer_manager).memory->device;
}

void buffer_count(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args &args) {
  args.buffer_count = manager_of(args.transfer_manager).parts.size();
}

void buffer_size(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args &args) {
  args.buffer_size = static_cast<size_t>(manager_of(args.transfer_manager).part(args.buffer_index).bytes);
}

void set_buffer_error(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args &args) {
  manager_of(args.transfer_manager)
      .part(args.buffer_index)
      .ready->set(Failure(args.error_code, given_text(args.error_message, args.error_message_size, "error_message")));
}

} // namespace

void add_transfer_manager_functions(PJRT_Api &api) {
  api.PJRT_Client_CreateBuffersForAsyncHostToDevice = entry<create_buffers>;
  api.PJRT_AsyncHostToDeviceTransferManager_Destroy = entry<manager_destroy>;
  api.PJRT_AsyncHostToDeviceTransferManager_TransferData = entry<transfer_data>;
  api.PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer = entry<retrieve_buffer>;
  api.PJRT_AsyncHostToDeviceTransferManager_Device = entry<manager_device>;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferCount = entry<buffer_count>;
  api.PJRT_AsyncHostToDeviceTransferManager_BufferSize = entry<buffer_size>;
  api.PJRT_AsyncHostToDeviceTransferManager_SetBufferError = entry<set_buffer_error>;
}

} // namespace disc::pjrt
