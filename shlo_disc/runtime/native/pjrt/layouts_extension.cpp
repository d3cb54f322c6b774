// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts by name.
#include "bytes.h"
#include "executable.h"
#include "extensions.h"

namespace disc::pjrt {

namespace {

/// Layouts live as long as the process.
void layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args &args) { given(args.layout, "layout"); }

void layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args &args) {
  args.serialized_layout = new PJRT_Bytes{given(args.layout, "layout").text};
  args.serialized_layout_deleter = delete_bytes;
  lend(args.serialized_layout->contents, args.serialized_bytes, args.serialized_bytes_size);
}

void client_default(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args &args) { args.layout = &row_major(args.num_dims); }

void topology_default(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args &args) {
  args.layout = &row_major(args.num_dims);
}

void layout_of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args &args) {
  args.layout = &given(args.buffer, "buffer").layout;
}

void layouts_of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args &args) {
  const Code &code = *given(args.executable, "executable").code;
  args.num_outputs = code.output_layouts.size();
  args.layouts = const_cast<Layout **>(code.output_layouts.data());
}

void layouts_of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args &args) {
  const Code &code = *given(args.executable, "executable").code;
  args.num_parameters = code.argument_layouts.size();
  args.layouts = const_cast<Layout **>(code.argument_layouts.data());
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
