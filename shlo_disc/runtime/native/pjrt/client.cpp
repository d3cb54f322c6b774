// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "client.h"

#include <limits>
#include <string_view>

PJRT_Client::PJRT_Client(const disc::pjrt::ClientOptions &options)
    : runtime(disc::default_device()), topology(options.device_count, true) {
  for (PJRT_DeviceDescription *description : topology.device_list) {
    devices.push_back(std::make_unique<PJRT_Device>(this, description));
    device_list.push_back(devices.back().get());
    memory_list.insert(memory_list.end(), devices.back()->memory_list.begin(), devices.back()->memory_list.end());
  }
}

PJRT_Device &PJRT_Client::device(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(devices.size()))
    disc::pjrt::fail_argument("there is no device " + std::to_string(id) + "; there are " +
                              std::to_string(devices.size()));
  return *devices[static_cast<size_t>(id)];
}

namespace disc::pjrt {

const std::string &platform_name() {
  static const std::string name = kPlatformName;
  return name;
}

const std::string &platform_version() {
  static const std::string version = "shlo_disc, CPU";
  return version;
}

int checked_device_count(int64_t count) {
  constexpr int64_t most = 4096;
  if (count < 1 || count > most)
    fail_argument("the option device_count is a number from 1 to " + std::to_string(most) + ", not " +
                  std::to_string(count));
  return static_cast<int>(count);
}

ClientOptions::ClientOptions(const PJRT_NamedValue *values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::string_view name(values[i].name, values[i].name_size);
    if (name == "device_count" && values[i].type == PJRT_NamedValue_kInt64)
      device_count = checked_device_count(values[i].int64_value);
    else
      fail_argument("'" + std::string(name) +
                    "' is no option of a client, or its value has another type; the option is device_count, an integer");
  }
}

namespace {

PJRT_Client &client_of(PJRT_Client *client) { return given(client, "client"); }

void client_create(PJRT_Client_Create_Args &args) {
  args.client = new PJRT_Client(ClientOptions(args.create_options, args.num_options));
}

void client_destroy(PJRT_Client_Destroy_Args &args) { delete args.client; }

void client_platform_name(PJRT_Client_PlatformName_Args &args) {
  client_of(args.client);
  lend(platform_name(), args.platform_name, args.platform_name_size);
}

void client_platform_version(PJRT_Client_PlatformVersion_Args &args) {
  client_of(args.client);
  lend(platform_version(), args.platform_version, args.platform_version_size);
}

void client_process_index(PJRT_Client_ProcessIndex_Args &args) {
  client_of(args.client);
  args.process_index = 0;
}

void client_devices(PJRT_Client_Devices_Args &args) {
  args.devices = client_of(args.client).device_list.data();
  args.num_devices = args.client->device_list.size();
}

void client_addressable_devices(PJRT_Client_AddressableDevices_Args &args) {
  args.addressable_devices = client_of(args.client).device_list.data();
  args.num_addressable_devices = args.client->device_list.size();
}

void client_addressable_memories(PJRT_Client_AddressableMemories_Args &args) {
  args.addressable_memories = client_of(args.client).memory_list.data();
  args.num_addressable_memories = args.client->memory_list.size();
}

void client_lookup_device(PJRT_Client_LookupDevice_Args &args) {
  args.device = &client_of(args.client).device(args.id);
}

void client_lookup_addressable_device(PJRT_Client_LookupAddressableDevice_Args &args) {
  args.addressable_device = &client_of(args.client).device(args.local_hardware_id);
}

void client_topology_description(PJRT_Client_TopologyDescription_Args &args) {
  args.topology = &client_of(args.client).topology;
}

/// Replicas, and in each its partitions, take the devices in order.
void client_default_device_assignment(PJRT_Client_DefaultDeviceAssignment_Args &args) {
  const PJRT_Client &client = client_of(args.client);
  int64_t count = int64_t{args.num_replicas} * args.num_partitions;
  if (args.num_replicas < 1 || args.num_partitions < 1 || count > static_cast<int64_t>(client.devices.size()))
    fail_argument("there are not as many devices as replicas times partitions");
  if (args.default_assignment_size < static_cast<size_t>(count))
    fail_argument("the list for the assignment is too short");
  for (int32_t i = 0; i < count; ++i)
    (&given(args.default_assignment, "default_assignment"))[i] = i;
}

} // namespace

void add_client_functions(PJRT_Api &api) {
  api.PJRT_Client_Create = entry_up_to<client_create, &PJRT_Client_Create_Args::client>;
  api.PJRT_Client_Destroy = entry<client_destroy>;
  api.PJRT_Client_PlatformName = entry<client_platform_name>;
  api.PJRT_Client_PlatformVersion = entry<client_platform_version>;
  api.PJRT_Client_ProcessIndex = entry<client_process_index>;
  api.PJRT_Client_Devices = entry<client_devices>;
  api.PJRT_Client_AddressableDevices = entry<client_addressable_devices>;
  api.PJRT_Client_AddressableMemories = entry<client_addressable_memories>;
  api.PJRT_Client_LookupDevice = entry<client_lookup_device>;
  api.PJRT_Client_LookupAddressableDevice = entry<client_lookup_addressable_device>;
  api.PJRT_Client_TopologyDescription = entry<client_topology_description>;
  api.PJRT_Client_DefaultDeviceAssignment = entry<client_default_device_assignment>;
}

} // namespace disc::pjrt
