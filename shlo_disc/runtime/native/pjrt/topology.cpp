// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bytes.h"
#include "client.h"

#include <charconv>

namespace {

constexpr std::string_view kSerialized = "shlo_disc topology 1: "; // then the number of devices of each process

std::vector<int> device_counts_of(std::string_view serialized) {
  if (!serialized.starts_with(kSerialized))
    disc::pjrt::fail_argument("the bytes are no topology of shlo_disc");
  std::vector<int> counts;
  const char *last = serialized.data() + serialized.size();
  for (const char *at = serialized.data() + kSerialized.size();; ++at) {
    int count = 0;
    auto [end, code] = std::from_chars(at, last, count);
    if (code != std::errc() || (end != last && *end != ' '))
      disc::pjrt::fail_argument("the bytes are no topology of shlo_disc");
    counts.push_back(disc::pjrt::checked_device_count(count));
    if ((at = end) == last)
      return counts;
  }
}

} // namespace

PJRT_TopologyDescription::PJRT_TopologyDescription(std::vector<int> counts, bool belongs_to_client)
    : device_counts(std::move(counts)), belongs_to_client(belongs_to_client) {
  int id = 0;
  for (size_t process = 0; process < device_counts.size(); ++process)
    for (int local_id = 0; local_id < device_counts[process]; ++local_id) {
      devices.push_back(std::make_unique<PJRT_DeviceDescription>(id++, static_cast<int>(process), local_id));
      device_list.push_back(devices.back().get());
    }
}

PJRT_TopologyDescription::PJRT_TopologyDescription(std::string_view serialized)
    : PJRT_TopologyDescription(device_counts_of(serialized), false) {}

std::string PJRT_TopologyDescription::serialized() const {
  std::string text(kSerialized);
  for (const char *separator = ""; int count : device_counts) {
    text += separator + std::to_string(count);
    separator = " ";
  }
  return text;
}

uint64_t PJRT_TopologyDescription::fingerprint() const {
  constexpr uint64_t spread = 0x9e3779b97f4a7c15u; // the golden ratio, so that neighbours look different
  uint64_t fingerprint = 0;
  for (int count : device_counts)
    fingerprint = (fingerprint + static_cast<uint64_t>(count) + 1) * spread;
  return fingerprint;
}

namespace disc::pjrt {

namespace {

PJRT_TopologyDescription &topology_of(PJRT_TopologyDescription *topology) { return given(topology, "topology"); }

void topology_create(PJRT_TopologyDescription_Create_Args &args) {
  ClientOptions options(args.create_options, args.num_options);
  if (!options.gpus.empty())
    fail_unimplemented("a topology of GPUs without a client");
  args.topology = new PJRT_TopologyDescription(
      std::vector<int>(static_cast<size_t>(options.num_nodes), options.device_count), false);
}

void topology_destroy(PJRT_TopologyDescription_Destroy_Args &args) {
  if (!topology_of(args.topology).belongs_to_client)
    delete args.topology;
}

void topology_platform_name(PJRT_TopologyDescription_PlatformName_Args &args) {
  lend(topology_of(args.topology).platform, args.platform_name, args.platform_name_size);
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
  args.serialized_topology = new PJRT_Bytes{topology_of(args.topology).serialized()};
  args.serialized_topology_deleter = delete_bytes;
  lend(args.serialized_topology->contents, args.serialized_bytes, args.serialized_bytes_size);
}

void topology_deserialize(PJRT_TopologyDescription_Deserialize_Args &args) {
  std::string_view text(&given(args.serialized_topology, "serialized_topology"), args.serialized_topology_size);
  args.topology = new PJRT_TopologyDescription(text);
}

void topology_fingerprint(PJRT_TopologyDescription_Fingerprint_Args &args) {
  args.fingerprint = topology_of(args.topology).fingerprint();
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
