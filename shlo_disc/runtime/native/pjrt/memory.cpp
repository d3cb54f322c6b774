// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"

#include "program/processors.h"

namespace {

void *get_user_data(PJRT_Memory *memory, const void *key) {
  if (!memory)
    return nullptr;
  std::lock_guard lock(memory->mutex);
  auto found = memory->user_data.find(key);
  return found == memory->user_data.end() ? nullptr : found->second.data;
}

/// Without a memory to keep it, the data are the deleter's at once.
void set_user_data(PJRT_Memory *memory, const void *key, void *data, void (*deleter)(void *)) {
  PJRT_Memory::UserData old{data, deleter};
  if (memory) {
    std::lock_guard lock(memory->mutex);
    old = std::exchange(memory->user_data[key], {data, deleter});
  }
  if (old.deleter)
    old.deleter(old.data);
}

const PJRT_Memory_FunctionTable kTable{{sizeof(PJRT_Memory_FunctionTable), nullptr}, sizeof(PJRT_Memory),
                                       get_user_data, set_user_data};

} // namespace

PJRT_Memory::PJRT_Memory(PJRT_Device *device, int id, int kind_id)
    : table(&kTable), device(device), id(id), kind_id(kind_id), kind(disc::pjrt::kMemoryKinds[kind_id]),
      text("ShloDiscMemory(id=" + std::to_string(id) + ", kind=" + kind + ")"),
      place(kind_id == 0 ? device->runtime : disc::default_device()) {}

PJRT_Memory::~PJRT_Memory() {
  for (auto &[key, entry] : user_data)
    if (entry.deleter)
      entry.deleter(entry.data);
}

namespace disc::pjrt {

namespace {

PJRT_Memory &memory_of(PJRT_Memory *memory) { return given(memory, "memory"); }

void memory_id(PJRT_Memory_Id_Args &args) { args.id = memory_of(args.memory).id; }
void memory_kind(PJRT_Memory_Kind_Args &args) { lend(memory_of(args.memory).kind, args.kind, args.kind_size); }
void memory_kind_id(PJRT_Memory_Kind_Id_Args &args) { args.kind_id = memory_of(args.memory).kind_id; }

void memory_debug_string(PJRT_Memory_DebugString_Args &args) {
  lend(memory_of(args.memory).text, args.debug_string, args.debug_string_size);
}

void memory_to_string(PJRT_Memory_ToString_Args &args) {
  lend(memory_of(args.memory).text, args.to_string, args.to_string_size);
}

void memory_addressable_by_devices(PJRT_Memory_AddressableByDevices_Args &args) {
  args.devices = &memory_of(args.memory).device->itself;
  args.num_devices = 1;
}

} // namespace

void add_memory_functions(PJRT_Api &api) {
  api.PJRT_Memory_Id = entry<memory_id>;
  api.PJRT_Memory_Kind = entry<memory_kind>;
  api.PJRT_Memory_Kind_Id = entry<memory_kind_id>;
  api.PJRT_Memory_DebugString = entry<memory_debug_string>;
  api.PJRT_Memory_ToString = entry<memory_to_string>;
  api.PJRT_Memory_AddressableByDevices = entry<memory_addressable_by_devices>;
}

} // namespace disc::pjrt
