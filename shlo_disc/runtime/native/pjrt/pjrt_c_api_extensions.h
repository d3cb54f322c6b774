// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The extensions of PJRT's C API that this plugin has: the structures of XLA's pjrt_c_api_layouts_extension.h,
// pjrt_c_api_ffi_extension.h, pjrt_c_api_memory_descriptions_extension.h, and pjrt_c_api_profiler_extension.h with its
// profiler_c_api.h. The order of fields is the interface.
#pragma once

#include "pjrt_c_api.h"

enum PJRT_Extension_Type : int32_t {
  PJRT_Extension_Type_Profiler = 1, PJRT_Extension_Type_Layouts = 4, PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MemoryDescriptions = 6
};

struct PJRT_Layouts_MemoryLayout;

struct PJRT_Layouts_MemoryLayout_Destroy_Args : PJRT_Head { PJRT_Layouts_MemoryLayout *layout; };
struct PJRT_Layouts_MemoryLayout_Serialize_Args : PJRT_Head {
  PJRT_Layouts_MemoryLayout *layout; const char *serialized_bytes; size_t serialized_bytes_size;
  PJRT_Bytes *serialized_layout; void (*serialized_layout_deleter)(PJRT_Bytes *);
};
struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args : PJRT_Head {
  PJRT_Client *client; PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims; PJRT_Layouts_MemoryLayout *layout;
};
struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args : PJRT_Head {
  PJRT_Buffer *buffer; PJRT_Layouts_MemoryLayout *layout;
};
struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args : PJRT_Head {
  PJRT_TopologyDescription *topology_description; PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims;
  PJRT_Layouts_MemoryLayout *layout;
};
struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args : PJRT_Head {
  PJRT_Executable *executable; size_t num_outputs; PJRT_Layouts_MemoryLayout **layouts;
};
struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args : PJRT_Head {
  PJRT_Executable *executable; size_t num_parameters; PJRT_Layouts_MemoryLayout **layouts;
};

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args *);
  PJRT_Error *(*serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args *);
  PJRT_Error *(*client_default)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *);
  PJRT_Error *(*of_buffer)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *);
  PJRT_Error *(*topology_default)(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *);
  PJRT_Error *(*of_outputs)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *);
  PJRT_Error *(*of_parameters)(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *);
};

struct PJRT_FFI_Type_Info { void *deleter, *serialize, *deserialize; };
struct PJRT_FFI_Type_Register_Args : PJRT_Head {
  const char *type_name; size_t type_name_size; int64_t type_id; PJRT_FFI_Type_Info *type_info;
};
struct PJRT_FFI_UserData { int64_t type_id; void *data; };
struct PJRT_FFI_UserData_Add_Args : PJRT_Head { PJRT_ExecuteContext *context; PJRT_FFI_UserData user_data; };
/// Has no place for extensions.
struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char *target_name; size_t target_name_size; void *handler;
  const char *platform_name; size_t platform_name_size; uint32_t traits;
};

struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*type_register)(PJRT_FFI_Type_Register_Args *);
  PJRT_Error *(*user_data_add)(PJRT_FFI_UserData_Add_Args *);
  PJRT_Error *(*register_handler)(PJRT_FFI_Register_Handler_Args *);
};

struct PJRT_MemoryDescription;

struct PJRT_DeviceDescription_MemoryDescriptions_Args : PJRT_Head {
  PJRT_DeviceDescription *device_description; const PJRT_MemoryDescription *const *memory_descriptions;
  size_t num_memory_descriptions, default_memory_index;
};
struct PJRT_MemoryDescription_Kind_Args : PJRT_Head {
  const PJRT_MemoryDescription *memory_description; const char *kind; size_t kind_size; int kind_id;
};

struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*of_device)(PJRT_DeviceDescription_MemoryDescriptions_Args *);
  PJRT_Error *(*kind)(PJRT_MemoryDescription_Kind_Args *);
};

/// Callers do not fill in the sizes of the structures of arguments.
struct PLUGIN_Profiler;
struct PLUGIN_Profiler_Error;
struct PLUGIN_Profiler_Error_Destroy_Args { size_t struct_size; void *priv; PLUGIN_Profiler_Error *error; };
struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size; void *priv; const PLUGIN_Profiler_Error *error; const char *message; size_t message_size;
};
struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size; void *priv; const PLUGIN_Profiler_Error *error; int32_t code;
};
struct PLUGIN_Profiler_Create_Args {
  size_t struct_size; const char *options; size_t options_size; PLUGIN_Profiler *profiler;
};
struct PLUGIN_Profiler_Destroy_Args { size_t struct_size; PLUGIN_Profiler *profiler; };
struct PLUGIN_Profiler_Start_Args { size_t struct_size; PLUGIN_Profiler *profiler; };
struct PLUGIN_Profiler_Stop_Args { size_t struct_size; PLUGIN_Profiler *profiler; };
struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size; PLUGIN_Profiler *profiler; uint8_t *buffer; size_t buffer_size_in_bytes;
};

/// As far as jaxlib 0.10 knows it; later fields are another way to fetch the data.
struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void *priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args *);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args *);
  PLUGIN_Profiler_Error *(*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args *);
  PLUGIN_Profiler_Error *(*create)(PLUGIN_Profiler_Create_Args *);
  PLUGIN_Profiler_Error *(*destroy)(PLUGIN_Profiler_Destroy_Args *);
  PLUGIN_Profiler_Error *(*start)(PLUGIN_Profiler_Start_Args *);
  PLUGIN_Profiler_Error *(*stop)(PLUGIN_Profiler_Stop_Args *);
  PLUGIN_Profiler_Error *(*collect_data)(PLUGIN_Profiler_CollectData_Args *);
};

struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  PLUGIN_Profiler_Api *profiler_api;
  int64_t traceme_context_id; // where the extension is an argument
};
