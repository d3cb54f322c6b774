// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bytes.h"
#include "client.h"

#include <charconv>

PJRT_TopologyDescription::PJRT_TopologyDescription(int device_count, bool belongs_to_client)
    : belongs_to_client(belongs_to_client) {
  for (int id = 0; id < device_count; ++id) {
    devices.push_back(std::make_unique<PJRT_DeviceDescription>(id));
    device_list.push_back(devices.back().get());
  }
}

namespace disc::pjrt {

namespace {

constexpr std::string_view kSerialized = "shlo_disc topology 1: "; // then the number of devices

PJRT_TopologyDescription &topology_of(PJRT_TopologyDescription *topology) { return given(topology, "topology"); }

void topology_create(PJRT_TopologyDescription_Create_Args &args) {
  ClientOptions options(args.create_options, args.num_options);
  args.topology = new PJRT_TopologyDescription(options.device_count, false);
}

void topology_destroy(PJRT_TopologyDescription_Destroy_Args &args) {
  if (!topology_of(args.topology).belongs_to_client)
    delete args.topology;
}

void topology_platform_name(PJRT_TopologyDescription_PlatformName_Args &args) {
  topology_of(args.topology);
  lend(platform_name(), args.platform_name, args.platform_name_size);
}

void topology_platform_version(PJRT_TopologyDescription_PlatformVersion_Args &args) {
  topology_of(args.topology);
  lend(platform_version(), args.platform_version, args.platform_version_size);
}

void topology_get_device_descriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args &args) {
  const PJRT_TopologyDescription &topology = topology_of(args.topology);
  args.descriptions = topology.device_list.data();
  args.num_descriptions = topology.device_list.size();
}

void topology_attributes(PJRT_TopologyDescription_Attributes_Args &args) {
  topology_of(args.topology);
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void topology_serialize(PJRT_TopologyDescription_Serialize_Args &args) {
  std::string text(kSerialized);
  text += std::to_string(topology_of(args.topology).devices.size());
  args.serialized_topology = new PJRT_Bytes{std::move(text)};
  args.serialized_topology_deleter = delete_bytes;
  lend(args.serialized_topology->contents, args.serialized_bytes, args.serialized_bytes_size);
}

void topology_deserialize(PJRT_TopologyDescription_Deserialize_Args &args) {
  std::string_view text(&given(args.serialized_topology, "serialized_topology"), args.serialized_topology_size);
  int count = 0;
  if (!text.starts_with(kSerialized))
    fail_argument("the bytes are no topology of shlo_disc");
  text.remove_prefix(kSerialized.size());
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (code != std::errc() || end != text.data() + text.size())
    fail_argument("the bytes are no topology of shlo_disc");
  args.topology = new PJRT_TopologyDescription(checked_device_count(count), false);
}

/// Topologies differ by the number of their devices only.
void topology_fingerprint(PJRT_TopologyDescription_Fingerprint_Args &args) {
  constexpr uint64_t spread = 0x9e3779b97f4a7c15u; // the golden ratio, so that neighbours look different
  args.fingerprint = spread * (topology_of(args.topology).devices.size() + 1);
}

} // namespace

void add_topology_functions(PJRT_Api &api) {
  api.PJRT_TopologyDescription_Create = entry<topology_create>;
  api.PJRT_TopologyDescription_Destroy = entry<topology_destroy>;
  api.PJRT_TopologyDescription_PlatformName = entry<topology_platform_name>;
  api.PJRT_TopologyDescription_PlatformVersion = entry<topology_platform_version>;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = entry<topology_get_device_descriptions>;
  api.PJRT_TopologyDescription_Attributes = entry<topology_attributes>;
  api.PJRT_TopologyDescription_Serialize = entry<topology_serialize>;
  api.PJRT_TopologyDescription_Deserialize = entry<topology_deserialize>;
  api.PJRT_TopologyDescription_Fingerprint = entry<topology_fingerprint>;
}

} // namespace disc::pjrt
