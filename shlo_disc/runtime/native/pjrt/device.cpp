// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device.h"

#include "client.h"

PJRT_DeviceDescription::PJRT_DeviceDescription(int id, int process, int local_id)
    : id(id), process(process), local_id(local_id), kind("cpu"),
      text("ShloDiscDevice(id=" + std::to_string(id) +
           (process == 0 ? "" : ", process=" + std::to_string(process)) + ")") {}

PJRT_Memory *PJRT_Device::default_memory() const {
  if (!is_addressable())
    disc::pjrt::fail_argument("device " + std::to_string(description->id) + " is one of process " +
                              std::to_string(description->process));
  return memory_list.front();
}

PJRT_Device::PJRT_Device(PJRT_Client *client, PJRT_DeviceDescription *description, std::shared_ptr<disc::Device> given)
    : client(client), description(description), runtime(std::move(given)) {
  if (!runtime)
    return;
  constexpr int kinds = std::size(disc::pjrt::kMemoryKinds);
  for (int kind = 0; kind < kinds; ++kind) {
    memories.push_back(std::make_unique<PJRT_Memory>(this, description->id * kinds + kind, kind));
    memory_list.push_back(memories.back().get());
  }
}

namespace disc::pjrt {

namespace {

const std::string kCapability = "compute_capability";

PJRT_Device &device_of(PJRT_Device *device) { return given(device, "device"); }

/// Throws for another process's device.
PJRT_Device &addressable(PJRT_Device *device) {
  device_of(device).default_memory();
  return *device;
}

PJRT_DeviceDescription &described(PJRT_DeviceDescription *description) {
  return given(description, "device_description");
}

void description_id(PJRT_DeviceDescription_Id_Args &args) { args.id = described(args.device_description).id; }

void description_process_index(PJRT_DeviceDescription_ProcessIndex_Args &args) {
  args.process_index = described(args.device_description).process;
}

/// Attributes of a GPU, until this thread asks again.
template <typename Args> void describe(const PJRT_DeviceDescription &description, Args &args) {
  static thread_local PJRT_NamedValue attribute;
  attribute = {};
  attribute.struct_size = sizeof attribute;
  lend(kCapability, attribute.name, attribute.name_size);
  attribute.type = PJRT_NamedValue_kString;
  lend(description.compute_capability, attribute.string_value, attribute.value_size);
  args.attributes = &attribute;
  args.num_attributes = description.compute_capability.empty() ? 0 : 1;
}

void description_attributes(PJRT_DeviceDescription_Attributes_Args &args) {
  describe(described(args.device_description), args);
}

void description_kind(PJRT_DeviceDescription_Kind_Args &args) {
  lend(described(args.device_description).kind, args.device_kind, args.device_kind_size);
}

void description_debug_string(PJRT_DeviceDescription_DebugString_Args &args) {
  lend(described(args.device_description).text, args.debug_string, args.debug_string_size);
}

void description_to_string(PJRT_DeviceDescription_ToString_Args &args) {
  lend(described(args.device_description).text, args.to_string, args.to_string_size);
}

void device_get_description(PJRT_Device_GetDescription_Args &args) {
  args.device_description = device_of(args.device).description;
}

void device_is_addressable(PJRT_Device_IsAddressable_Args &args) {
  args.is_addressable = device_of(args.device).is_addressable();
}

void device_local_hardware_id(PJRT_Device_LocalHardwareId_Args &args) {
  const PJRT_Device &device = device_of(args.device);
  const PJRT_DeviceDescription &description = *device.description;
  int gpu = device.is_addressable() ? device.client->gpu_of(description.id) : -1;
  args.local_hardware_id = gpu < 0 ? description.local_id : gpu;
}

void device_addressable_memories(PJRT_Device_AddressableMemories_Args &args) {
  const PJRT_Device &device = device_of(args.device);
  args.memories = device.memory_list.data();
  args.num_memories = device.memory_list.size();
}

void device_default_memory(PJRT_Device_DefaultMemory_Args &args) {
  args.memory = device_of(args.device).default_memory();
}

/// What is not known is said not to be. The structure has grown at its end.
void device_memory_stats(PJRT_Device_MemoryStats_Args &args) {
  MemoryStats stats = addressable(args.device).runtime->allocator->stats();
  args.bytes_in_use = stats.live_bytes;
  args.peak_bytes_in_use = stats.peak_bytes;
  args.num_allocs = stats.arena_allocations + stats.result_allocations + stats.argument_copies;
  args.pool_bytes = stats.cached_bytes + stats.live_bytes;
  args.peak_bytes_in_use_is_set = args.num_allocs_is_set = args.pool_bytes_is_set = true;
  args.largest_alloc_size_is_set = args.bytes_limit_is_set = args.bytes_reserved_is_set = false;
  args.peak_bytes_reserved_is_set = args.bytes_reservable_limit_is_set = args.largest_free_block_bytes_is_set = false;
  if (has_field(args, args.peak_pool_bytes_is_set))
    args.peak_pool_bytes_is_set = false;
  if (has_field(args, args.peak_allocated_bytes_is_set))
    args.peak_allocated_bytes_is_set = false;
}

void device_clear_memory_stats(PJRT_Device_ClearMemoryStats_Args &args) {
  addressable(args.device).runtime->allocator->reset_peak();
}

void device_get_attributes(PJRT_Device_GetAttributes_Args &args) {
  describe(*device_of(args.device).description, args);
  args.device_attributes = nullptr;
  args.attributes_deleter = [](void *) {};
}

} // namespace

void add_device_functions(PJRT_Api &api) {
  api.PJRT_DeviceDescription_Id = entry<description_id>;
  api.PJRT_DeviceDescription_ProcessIndex = entry<description_process_index>;
  api.PJRT_DeviceDescription_Attributes = entry<description_attributes>;
  api.PJRT_DeviceDescription_Kind = entry<description_kind>;
  api.PJRT_DeviceDescription_DebugString = entry<description_debug_string>;
  api.PJRT_DeviceDescription_ToString = entry<description_to_string>;
  api.PJRT_Device_GetDescription = entry<device_get_description>;
  api.PJRT_Device_IsAddressable = entry<device_is_addressable>;
  api.PJRT_Device_LocalHardwareId = entry<device_local_hardware_id>;
  api.PJRT_Device_AddressableMemories = entry<device_addressable_memories>;
  api.PJRT_Device_DefaultMemory = entry<device_default_memory>;
  api.PJRT_Device_MemoryStats =
      entry_up_to<device_memory_stats, &PJRT_Device_MemoryStats_Args::pool_bytes_is_set>;
  api.PJRT_Device_ClearMemoryStats = entry<device_clear_memory_stats>;
  api.PJRT_Device_GetAttributes = entry<device_get_attributes>;
}

} // namespace disc::pjrt
