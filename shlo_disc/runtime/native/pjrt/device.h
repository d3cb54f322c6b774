// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices, their memories and their descriptions. The devices of a client are the processors, which share the runtime's
// threads and its allocator and differ by number, or GPUs. Other processes' devices are known by number only.
#pragma once

#include "core/device.h"
#include "error.h"
#include "worker.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disc::pjrt {

inline constexpr char kPlatformName[] = "shlo_disc", kGpuPlatformName[] = "shlo_disc_cuda";

/// Every device has these, as XLA's CPU devices have; the first is the default, and a
/// GPU's own. All others are the machine's memory.
inline constexpr const char *kMemoryKinds[] = {"device", "pinned_host", "unpinned_host"};

/// Lends a text to an argument structure.
inline void lend(const std::string &text, const char *&data, size_t &size) {
  data = text.data();
  size = text.size();
}

void add_device_functions(PJRT_Api &api);
void add_memory_functions(PJRT_Api &api);
void add_topology_functions(PJRT_Api &api);

} // namespace disc::pjrt

struct PJRT_DeviceDescription {
  PJRT_DeviceDescription(int id, int process, int local_id);

  int id;       // among those of all processes
  int process;
  int local_id; // among those of its process
  std::string kind, text;
  std::string compute_capability; // of a GPU
};

/// What is known of the devices without a client.
struct PJRT_TopologyDescription {
  /// device_counts: of each process.
  PJRT_TopologyDescription(std::vector<int> device_counts, bool belongs_to_client);

  /// Reads what `serialized` writes; throws INVALID_ARGUMENT.
  explicit PJRT_TopologyDescription(std::string_view serialized);
  PJRT_TopologyDescription(const PJRT_TopologyDescription &) = delete;
  PJRT_TopologyDescription &operator=(const PJRT_TopologyDescription &) = delete;

  std::string serialized() const;

  /// Topologies differ by the numbers of devices only.
  uint64_t fingerprint() const;

  std::vector<int> device_counts;
  std::vector<std::unique_ptr<PJRT_DeviceDescription>> devices;
  std::vector<PJRT_DeviceDescription *> device_list;
  bool belongs_to_client;
  std::string platform = disc::pjrt::kPlatformName;
};

struct PJRT_Memory {
  PJRT_Memory(PJRT_Device *device, int id, int kind_id);
  ~PJRT_Memory();

  const PJRT_Memory_FunctionTable *table; // first, by the interface
  PJRT_Device *device;
  int id, kind_id;
  std::string kind, text;
  const std::shared_ptr<disc::Device> place; // whose memory it is

  /// What frameworks attach.
  struct UserData {
    void *data;
    void (*deleter)(void *);
  };
  std::mutex mutex;
  std::map<const void *, UserData> user_data;
};

struct PJRT_Device {
  /// `runtime`: what computes; null for another process's device, which has no memories.
  PJRT_Device(PJRT_Client *client, PJRT_DeviceDescription *description, std::shared_ptr<disc::Device> runtime);

  /// Throws for another process's device.
  PJRT_Memory *default_memory() const;
  bool is_addressable() const { return !memory_list.empty(); }

  PJRT_Client *client;
  PJRT_DeviceDescription *description;
  const std::shared_ptr<disc::Device> runtime;
  disc::pjrt::Worker worker; // waits for a GPU
  std::vector<std::unique_ptr<PJRT_Memory>> memories;
  std::vector<PJRT_Memory *> memory_list;
  PJRT_Device *itself = this; // a list of one, for the memories' lists of devices
};
