// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kinds of memory that a device has, without a client: for programs that are compiled for a topology.
#include "device.h"
#include "extensions.h"

#include <array>

struct PJRT_MemoryDescription {
  std::string kind;
  int kind_id;
};

namespace disc::pjrt {

namespace {

constexpr size_t kKinds = std::size(kMemoryKinds);

/// Of every device. Lives as long as the process.
const std::array<const PJRT_MemoryDescription *, kKinds> &descriptions() {
  static const std::array<PJRT_MemoryDescription, kKinds> all = [] {
    std::array<PJRT_MemoryDescription, kKinds> made;
    for (size_t kind = 0; kind < kKinds; ++kind)
      made[kind] = {kMemoryKinds[kind], static_cast<int>(kind)};
    return made;
  }();
  static const std::array<const PJRT_MemoryDescription *, kKinds> addresses = [] {
    std::array<const PJRT_MemoryDescription *, kKinds> made;
    for (size_t kind = 0; kind < kKinds; ++kind)
      made[kind] = &all[kind];
    return made;
  }();
  return addresses;
}

void memories_of_device(PJRT_DeviceDescription_MemoryDescriptions_Args &args) {
  given(args.device_description, "device_description");
  args.memory_descriptions = descriptions().data();
  args.num_memory_descriptions = kKinds;
  args.default_memory_index = 0;
}

void kind_of_memory(PJRT_MemoryDescription_Kind_Args &args) {
  const PJRT_MemoryDescription &description = given(args.memory_description, "memory_description");
  lend(description.kind, args.kind, args.kind_size);
  args.kind_id = description.kind_id;
}

} // namespace

PJRT_Extension_Base *memory_descriptions_extension(PJRT_Extension_Base *next) {
  static PJRT_MemoryDescriptions_Extension extension{
      {sizeof(PJRT_MemoryDescriptions_Extension), PJRT_Extension_Type_MemoryDescriptions, next},
      entry<memories_of_device>,
      entry<kind_of_memory>};
  return &extension.base;
}

} // namespace disc::pjrt
