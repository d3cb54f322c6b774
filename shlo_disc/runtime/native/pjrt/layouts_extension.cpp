// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts by name: every array is row-major.
#include "bytes.h"
#include "executable.h"
#include "extensions.h"

struct PJRT_Layouts_MemoryLayout {
  size_t rank;
};

namespace disc::pjrt {

namespace {

void layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args &args) { delete args.layout; }

void layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args &args) {
  args.serialized_layout = new PJRT_Bytes{row_major_text(given(args.layout, "layout").rank)};
  args.serialized_layout_deleter = delete_bytes;
  lend(args.serialized_layout->contents, args.serialized_bytes, args.serialized_bytes_size);
}

void client_default(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args &args) {
  args.layout = new PJRT_Layouts_MemoryLayout{args.num_dims};
}

void topology_default(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args &args) {
  args.layout = new PJRT_Layouts_MemoryLayout{args.num_dims};
}

void layout_of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args &args) {
  args.layout = new PJRT_Layouts_MemoryLayout{given(args.buffer, "buffer").dims.size()};
}

/// One layout for each rank, all of them there for good: callers do not destroy those of executables.
PJRT_Layouts_MemoryLayout *shared_layout(size_t rank) {
  static std::mutex mutex;
  static auto *layouts = new std::map<size_t, PJRT_Layouts_MemoryLayout>;
  std::lock_guard lock(mutex);
  return &layouts->try_emplace(rank, PJRT_Layouts_MemoryLayout{rank}).first->second;
}

} // namespace

std::vector<PJRT_Layouts_MemoryLayout *> layouts_of(const std::vector<ArraySpec> &arrays, size_t count) {
  std::vector<PJRT_Layouts_MemoryLayout *> layouts;
  for (size_t i = 0; i < count; ++i)
    layouts.push_back(shared_layout(arrays[i].shape.size()));
  return layouts;
}

namespace {

void layouts_of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args &args) {
  const Code &code = *given(args.executable, "executable").code;
  args.num_outputs = code.output_layouts.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout **>(code.output_layouts.data());
}

void layouts_of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args &args) {
  const Code &code = *given(args.executable, "executable").code;
  args.num_parameters = code.argument_layouts.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout **>(code.argument_layouts.data());
}

} // namespace

PJRT_Extension_Base *layouts_extension(PJRT_Extension_Base *next) {
  static PJRT_Layouts_Extension extension{{sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, next},
                                          entry<layout_destroy>,
                                          entry<layout_serialize>,
                                          entry<client_default>,
                                          entry<layout_of_buffer>,
                                          entry<topology_default>,
                                          entry<layouts_of_outputs>,
                                          entry<layouts_of_parameters>};
  return &extension.base;
}

} // namespace disc::pjrt
