// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// XLA's CompileOptionsProto, as much of it as matters here, and DeviceAssignmentProto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disc::pjrt {

/// Which devices run a program: `devices[replica * partitions + partition]`; empty when the caller leaves it open.
struct CompileOptions {
  /// Throws INVALID_ARGUMENT on bytes that are no such message.
  explicit CompileOptions(std::string_view message);

  int64_t replicas = 1;
  int64_t partitions = 1;
  std::vector<int64_t> devices;
  std::vector<std::string> overrides; // the names of options that the user chose
};

/// Refuses names that are no options. Those of XLA are accepted, so that programs need not be changed; they do nothing.
void check_overrides(const CompileOptions &options);

/// A DeviceAssignmentProto.
std::string device_assignment_message(const CompileOptions &options, const std::vector<int64_t> &devices);

} // namespace disc::pjrt
