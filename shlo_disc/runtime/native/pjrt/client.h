// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The client: what a framework holds while it uses the plugin.
#pragma once

#include "../executable.h"
#include "device.h"

namespace disc::pjrt {

const std::string &platform_name();
const std::string &platform_version();

/// Refuses a number of devices that is not one.
int checked_device_count(int64_t count);

/// What a client is created with. "device_count": how many devices it has, 1 by default.
struct ClientOptions {
  ClientOptions(const PJRT_NamedValue *values, size_t count);

  int device_count = 1;
};

void add_client_functions(PJRT_Api &api);

} // namespace disc::pjrt

struct PJRT_Client {
  explicit PJRT_Client(const disc::pjrt::ClientOptions &options);

  /// The device with a number. Throws when there is none.
  PJRT_Device &device(int64_t id) const;

  std::shared_ptr<disc::Device> runtime;
  PJRT_TopologyDescription topology;
  std::vector<std::unique_ptr<PJRT_Device>> devices;
  std::vector<PJRT_Device *> device_list;
  std::vector<PJRT_Memory *> memory_list;
};
