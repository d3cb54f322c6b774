// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions between frameworks and a PJRT plugin, and the structure of arguments of each, as in XLA's
// xla/pjrt/c/pjrt_c_api.h as far as they are used here. The order of fields and of functions is the interface.
#pragma once

#include "pjrt_c_api_types.h"

// Errors, events and the plugin

struct PJRT_Error_Destroy_Args : PJRT_Head { PJRT_Error *error; };
struct PJRT_Error_ForEachPayload_Args : PJRT_Head {
  PJRT_Error *error; PJRT_Error_PayloadVisitor visitor; void *user_arg;
};
struct PJRT_Error_GetCode_Args : PJRT_Head { PJRT_Error *error; PJRT_Error_Code code; };
struct PJRT_Error_Message_Args : PJRT_Head { PJRT_Error *error; const char *message; size_t message_size; };
struct PJRT_Event_Await_Args : PJRT_Head { PJRT_Event *event; };
struct PJRT_Event_Create_Args : PJRT_Head { PJRT_Event *event; };
struct PJRT_Event_Destroy_Args : PJRT_Head { PJRT_Event *event; };
struct PJRT_Event_Error_Args : PJRT_Head { PJRT_Event *event; };
struct PJRT_Event_IsReady_Args : PJRT_Head { PJRT_Event *event; bool is_ready; };
struct PJRT_Event_OnReady_Args : PJRT_Head { PJRT_Event *event; PJRT_Event_OnReadyCallback callback; void *user_arg; };
struct PJRT_Event_Set_Args : PJRT_Head {
  PJRT_Event *event; PJRT_Error_Code error_code; const char *error_message; size_t error_message_size;
};
struct PJRT_Plugin_Attributes_Args : PJRT_Head { const PJRT_NamedValue *attributes; size_t num_attributes; };
struct PJRT_Plugin_Initialize_Args : PJRT_Head {};

// The keys and values that the processes of a job share

using PJRT_CallbackError = PJRT_Error *(*)(PJRT_Error_Code code, const char *message, size_t message_size);
struct PJRT_KeyValueGetCallback_Args : PJRT_Head {
  const char *key; size_t key_size; int32_t timeout_in_ms; PJRT_CallbackError *callback_error; void *user_arg;
  char *value; size_t value_size; void (*value_deleter_callback)(char *value);
};
struct PJRT_KeyValuePutCallback_Args : PJRT_Head {
  const char *key; size_t key_size; const char *value; size_t value_size; PJRT_CallbackError *callback_error;
  void *user_arg;
};
using PJRT_KeyValueGetCallback = PJRT_Error *(*)(PJRT_KeyValueGetCallback_Args *args);
using PJRT_KeyValuePutCallback = PJRT_Error *(*)(PJRT_KeyValuePutCallback_Args *args);

// Clients

struct PJRT_Client_AddressableDevices_Args : PJRT_Head {
  PJRT_Client *client; PJRT_Device *const *addressable_devices; size_t num_addressable_devices;
};
struct PJRT_Client_AddressableMemories_Args : PJRT_Head {
  PJRT_Client *client; PJRT_Memory *const *addressable_memories; size_t num_addressable_memories;
};
struct PJRT_Client_BufferFromHostBuffer_Args : PJRT_Head {
  PJRT_Client *client; const void *data; PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims;
  const int64_t *byte_strides; size_t num_byte_strides; PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device *device; PJRT_Memory *memory; PJRT_Buffer_MemoryLayout *device_layout; PJRT_Event *done_with_host_buffer;
  PJRT_Buffer *buffer;
};
struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args : PJRT_Head {
  PJRT_Client *client; PJRT_ShapeSpec *shape_specs; size_t num_shape_specs; PJRT_Buffer_MemoryLayout **device_layouts;
  size_t num_device_layouts; PJRT_Memory *memory; PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
};
struct PJRT_Client_CreateUninitializedBuffer_Args : PJRT_Head {
  PJRT_Client *client; const int64_t *shape_dims; size_t shape_num_dims; PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout *shape_layout; PJRT_Device *device; PJRT_Memory *memory; PJRT_Buffer *buffer;
};
struct PJRT_Client_CreateViewOfDeviceBuffer_Args : PJRT_Head {
  PJRT_Client *client; void *device_buffer_ptr; const int64_t *dims; size_t num_dims; PJRT_Buffer_Type element_type;
  PJRT_Buffer_MemoryLayout *layout; PJRT_Device *device; void (*on_delete_callback)(void *address, void *arg);
  void *on_delete_callback_arg; int64_t stream; PJRT_Buffer *buffer; PJRT_Memory *memory;
};
struct PJRT_Client_Create_Args : PJRT_Head {
  const PJRT_NamedValue *create_options; size_t num_options; PJRT_KeyValueGetCallback kv_get_callback;
  void *kv_get_user_arg; PJRT_KeyValuePutCallback kv_put_callback; void *kv_put_user_arg; PJRT_Client *client;
  void *kv_try_get_callback; void *kv_try_get_user_arg;
};
struct PJRT_Client_DefaultDeviceAssignment_Args : PJRT_Head {
  PJRT_Client *client; int32_t num_replicas, num_partitions; size_t default_assignment_size;
  int32_t *default_assignment;
};
struct PJRT_Client_Destroy_Args : PJRT_Head { PJRT_Client *client; };
struct PJRT_Client_Devices_Args : PJRT_Head { PJRT_Client *client; PJRT_Device *const *devices; size_t num_devices; };
struct PJRT_Client_LookupAddressableDevice_Args : PJRT_Head {
  PJRT_Client *client; int32_t local_hardware_id; PJRT_Device *addressable_device;
};
struct PJRT_Client_LookupDevice_Args : PJRT_Head { PJRT_Client *client; int32_t id; PJRT_Device *device; };
struct PJRT_Client_PlatformName_Args : PJRT_Head {
  PJRT_Client *client; const char *platform_name; size_t platform_name_size;
};
struct PJRT_Client_PlatformVersion_Args : PJRT_Head {
  PJRT_Client *client; const char *platform_version; size_t platform_version_size;
};
struct PJRT_Client_ProcessIndex_Args : PJRT_Head { PJRT_Client *client; int32_t process_index; };
struct PJRT_ProcessInfo {
  size_t struct_size; int32_t task_id; uint64_t incarnation_id; PJRT_ProcessState state; int32_t error_code;
  const char *error_message; size_t error_message_size;
};
struct PJRT_Client_UpdateGlobalProcessInfo_Args : PJRT_Head {
  PJRT_Client *client; PJRT_ProcessInfo *process_infos; size_t num_process_infos;
};
struct PJRT_Client_TopologyDescription_Args : PJRT_Head { PJRT_Client *client; PJRT_TopologyDescription *topology; };

// Devices, memories and topologies

struct PJRT_DeviceDescription_Attributes_Args : PJRT_Head {
  PJRT_DeviceDescription *device_description; size_t num_attributes; const PJRT_NamedValue *attributes;
};
struct PJRT_DeviceDescription_DebugString_Args : PJRT_Head {
  PJRT_DeviceDescription *device_description; const char *debug_string; size_t debug_string_size;
};
struct PJRT_DeviceDescription_Id_Args : PJRT_Head { PJRT_DeviceDescription *device_description; int32_t id; };
struct PJRT_DeviceDescription_Kind_Args : PJRT_Head {
  PJRT_DeviceDescription *device_description; const char *device_kind; size_t device_kind_size;
};
struct PJRT_DeviceDescription_ProcessIndex_Args : PJRT_Head {
  PJRT_DeviceDescription *device_description; int32_t process_index;
};
struct PJRT_DeviceDescription_ToString_Args : PJRT_Head {
  PJRT_DeviceDescription *device_description; const char *to_string; size_t to_string_size;
};
struct PJRT_Device_AddressableMemories_Args : PJRT_Head {
  PJRT_Device *device; PJRT_Memory *const *memories; size_t num_memories;
};
struct PJRT_Device_ClearMemoryStats_Args : PJRT_Head { PJRT_Device *device; };
struct PJRT_Device_DefaultMemory_Args : PJRT_Head { PJRT_Device *device; PJRT_Memory *memory; };
struct PJRT_Device_GetAttributes_Args : PJRT_Head {
  PJRT_Device *device; const PJRT_NamedValue *attributes; size_t num_attributes; void *device_attributes;
  void (*attributes_deleter)(void *);
};
struct PJRT_Device_GetDescription_Args : PJRT_Head { PJRT_Device *device; PJRT_DeviceDescription *device_description; };
struct PJRT_Device_IsAddressable_Args : PJRT_Head { PJRT_Device *device; bool is_addressable; };
struct PJRT_Device_LocalHardwareId_Args : PJRT_Head { PJRT_Device *device; int32_t local_hardware_id; };
struct PJRT_Device_MemoryStats_Args : PJRT_Head {
  PJRT_Device *device; int64_t bytes_in_use, peak_bytes_in_use; bool peak_bytes_in_use_is_set; int64_t num_allocs;
  bool num_allocs_is_set; int64_t largest_alloc_size; bool largest_alloc_size_is_set; int64_t bytes_limit;
  bool bytes_limit_is_set; int64_t bytes_reserved; bool bytes_reserved_is_set; int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set; int64_t bytes_reservable_limit; bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes; bool largest_free_block_bytes_is_set; int64_t pool_bytes; bool pool_bytes_is_set;
  int64_t peak_pool_bytes; bool peak_pool_bytes_is_set; int64_t peak_allocated_bytes; bool peak_allocated_bytes_is_set;
};
struct PJRT_Memory_AddressableByDevices_Args : PJRT_Head {
  PJRT_Memory *memory; PJRT_Device *const *devices; size_t num_devices;
};
struct PJRT_Memory_DebugString_Args : PJRT_Head {
  PJRT_Memory *memory; const char *debug_string; size_t debug_string_size;
};
struct PJRT_Memory_Id_Args : PJRT_Head { PJRT_Memory *memory; int32_t id; };
struct PJRT_Memory_Kind_Args : PJRT_Head { PJRT_Memory *memory; const char *kind; size_t kind_size; };
struct PJRT_Memory_Kind_Id_Args : PJRT_Head { PJRT_Memory *memory; int32_t kind_id; };
struct PJRT_Memory_ToString_Args : PJRT_Head { PJRT_Memory *memory; const char *to_string; size_t to_string_size; };
struct PJRT_TopologyDescription_Attributes_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; const PJRT_NamedValue *attributes; size_t num_attributes;
};
struct PJRT_TopologyDescription_Create_Args : PJRT_Head {
  const char *topology_name; size_t topology_name_size; const PJRT_NamedValue *create_options; size_t num_options;
  PJRT_TopologyDescription *topology;
};
struct PJRT_TopologyDescription_Deserialize_Args : PJRT_Head {
  const char *serialized_topology; size_t serialized_topology_size; PJRT_TopologyDescription *topology;
};
struct PJRT_TopologyDescription_Destroy_Args : PJRT_Head { PJRT_TopologyDescription *topology; };
struct PJRT_TopologyDescription_Fingerprint_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; uint64_t fingerprint;
};
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; PJRT_DeviceDescription *const *descriptions; size_t num_descriptions;
};
struct PJRT_TopologyDescription_PlatformName_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; const char *platform_name; size_t platform_name_size;
};
struct PJRT_TopologyDescription_PlatformVersion_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; const char *platform_version; size_t platform_version_size;
};
struct PJRT_TopologyDescription_Serialize_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; const char *serialized_bytes; size_t serialized_bytes_size;
  PJRT_Bytes *serialized_topology; void (*serialized_topology_deleter)(PJRT_Bytes *);
};

// Buffers

struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager; size_t buffer_count;
};
struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager; int32_t buffer_index; size_t buffer_size;
};
struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager;
};
struct PJRT_AsyncHostToDeviceTransferManager_Device_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager; PJRT_Device *device_out;
};
struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager; int32_t buffer_index; PJRT_Buffer *buffer_out;
};
struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager; int32_t buffer_index; PJRT_Error_Code error_code;
  const char *error_message; size_t error_message_size;
};
struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args : PJRT_Head {
  PJRT_AsyncHostToDeviceTransferManager *transfer_manager; int32_t buffer_index; const void *data;
  int64_t offset, transfer_size; bool is_last_transfer; PJRT_Event *done_with_h2d_transfer;
};
struct PJRT_Buffer_Bitcast_Args : PJRT_Head {
  PJRT_Buffer *buffer; PJRT_Buffer_Type element_type; const int64_t *dims; size_t num_dims;
  PJRT_Buffer_MemoryLayout *device_layout; PJRT_Buffer *out_buffer;
};
struct PJRT_Buffer_CopyRawToHost_Args : PJRT_Head {
  PJRT_Buffer *buffer; void *dst; int64_t offset, transfer_size; PJRT_Event *event;
};
struct PJRT_Buffer_CopyToDevice_Args : PJRT_Head {
  PJRT_Buffer *buffer; PJRT_Device *dst_device; PJRT_Buffer *dst_buffer;
};
struct PJRT_Buffer_CopyToMemory_Args : PJRT_Head {
  PJRT_Buffer *buffer; PJRT_Memory *dst_memory; PJRT_Buffer *dst_buffer;
};
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args : PJRT_Head { PJRT_Buffer *buffer; };
struct PJRT_Buffer_Delete_Args : PJRT_Head { PJRT_Buffer *buffer; };
struct PJRT_Buffer_Destroy_Args : PJRT_Head { PJRT_Buffer *buffer; };
struct PJRT_Buffer_Device_Args : PJRT_Head { PJRT_Buffer *buffer; PJRT_Device *device; };
struct PJRT_Buffer_Dimensions_Args : PJRT_Head { PJRT_Buffer *buffer; const int64_t *dims; size_t num_dims; };
struct PJRT_Buffer_DynamicDimensionIndices_Args : PJRT_Head {
  PJRT_Buffer *buffer; const size_t *dynamic_dim_indices; size_t num_dynamic_dims;
};
struct PJRT_Buffer_ElementType_Args : PJRT_Head { PJRT_Buffer *buffer; PJRT_Buffer_Type type; };
struct PJRT_Buffer_GetMemoryLayout_Args : PJRT_Head { PJRT_Buffer *buffer; PJRT_Buffer_MemoryLayout layout; };
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args : PJRT_Head { PJRT_Buffer *buffer; };
struct PJRT_Buffer_IsDeleted_Args : PJRT_Head { PJRT_Buffer *buffer; bool is_deleted; };
struct PJRT_Buffer_IsOnCpu_Args : PJRT_Head { PJRT_Buffer *buffer; bool is_on_cpu; };
struct PJRT_Buffer_Memory_Args : PJRT_Head { PJRT_Buffer *buffer; PJRT_Memory *memory; };
struct PJRT_Buffer_OnDeviceSizeInBytes_Args : PJRT_Head { PJRT_Buffer *buffer; size_t on_device_size_in_bytes; };
struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args : PJRT_Head { PJRT_Buffer *buffer; void *device_memory_ptr; };
struct PJRT_Buffer_ReadyEvent_Args : PJRT_Head { PJRT_Buffer *buffer; PJRT_Event *event; };
struct PJRT_Buffer_ToHostBuffer_Args : PJRT_Head {
  PJRT_Buffer *src; PJRT_Buffer_MemoryLayout *host_layout; void *dst; size_t dst_size; PJRT_Event *event;
};
struct PJRT_Buffer_UnpaddedDimensions_Args : PJRT_Head {
  PJRT_Buffer *buffer; const int64_t *unpadded_dims; size_t num_dims;
};
struct PJRT_Buffer_UnsafePointer_Args : PJRT_Head { PJRT_Buffer *buffer; uintptr_t buffer_pointer; };

// Programs and executables

struct PJRT_Client_Compile_Args : PJRT_Head {
  PJRT_Client *client; PJRT_Program *program; const char *compile_options; size_t compile_options_size;
  PJRT_LoadedExecutable *executable;
};
struct PJRT_Client_Load_Args : PJRT_Head {
  PJRT_Client *client; PJRT_Executable *executable; const char *compile_options; size_t compile_options_size;
  PJRT_LoadedExecutable *loaded_executable;
};
struct PJRT_Compile_Args : PJRT_Head {
  PJRT_TopologyDescription *topology; PJRT_Program *program; const char *compile_options; size_t compile_options_size;
  PJRT_Client *client; PJRT_Executable *executable;
};
struct PJRT_Executable_DeserializeAndLoad_Args : PJRT_Head {
  PJRT_Client *client; const char *serialized_executable; size_t serialized_executable_size;
  PJRT_LoadedExecutable *loaded_executable; const char *overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size; void *load_options;
};
struct PJRT_Executable_Destroy_Args : PJRT_Head { PJRT_Executable *executable; };
struct PJRT_Executable_Fingerprint_Args : PJRT_Head {
  PJRT_Executable *executable; const char *executable_fingerprint; size_t executable_fingerprint_size;
};
struct PJRT_Executable_GetCompileOptions_Args : PJRT_Head {
  PJRT_Executable *executable; const char *serialized_bytes; size_t serialized_bytes_size;
  PJRT_Bytes *serialized_compile_options; void (*serialized_compile_options_deleter)(PJRT_Bytes *);
};
struct PJRT_Executable_GetCompiledMemoryStats_Args : PJRT_Head {
  PJRT_Executable *executable;
  int64_t generated_code_size_in_bytes, argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes,
      temp_size_in_bytes, host_generated_code_size_in_bytes, host_argument_size_in_bytes, host_output_size_in_bytes,
      host_alias_size_in_bytes, host_temp_size_in_bytes, peak_memory_in_bytes, total_size_in_bytes,
      total_allocation_bytes, indefinite_allocations, peak_unpadded_heap_bytes;
};
struct PJRT_Executable_GetCostAnalysis_Args : PJRT_Head {
  PJRT_Executable *executable; size_t num_properties; const PJRT_NamedValue *properties;
};
struct PJRT_Executable_Name_Args : PJRT_Head {
  PJRT_Executable *executable; const char *executable_name; size_t executable_name_size;
};
struct PJRT_Executable_NumOutputs_Args : PJRT_Head { PJRT_Executable *executable; size_t num_outputs; };
struct PJRT_Executable_NumPartitions_Args : PJRT_Head { PJRT_Executable *executable; size_t num_partitions; };
struct PJRT_Executable_NumReplicas_Args : PJRT_Head { PJRT_Executable *executable; size_t num_replicas; };
struct PJRT_Executable_OptimizedProgram_Args : PJRT_Head { PJRT_Executable *executable; PJRT_Program *program; };
struct PJRT_Executable_OutputDimensions_Args : PJRT_Head {
  PJRT_Executable *executable; size_t num_outputs; const int64_t *dims; const size_t *dim_sizes;
};
struct PJRT_Executable_OutputElementTypes_Args : PJRT_Head {
  PJRT_Executable *executable; const PJRT_Buffer_Type *output_types; size_t num_output_types;
};
struct PJRT_Executable_OutputMemoryKinds_Args : PJRT_Head {
  PJRT_Executable *executable; size_t num_outputs; const char *const *memory_kinds; const size_t *memory_kind_sizes;
};
struct PJRT_Executable_ParameterMemoryKinds_Args : PJRT_Head {
  PJRT_Executable *executable; size_t num_parameters; const char *const *memory_kinds; const size_t *memory_kind_sizes;
};
struct PJRT_Executable_Serialize_Args : PJRT_Head {
  PJRT_Executable *executable; const char *serialized_bytes; size_t serialized_bytes_size;
  PJRT_Bytes *serialized_executable; void (*serialized_executable_deleter)(PJRT_Bytes *);
};
struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args : PJRT_Head {
  PJRT_Executable *executable; int64_t size_in_bytes;
};
struct PJRT_ExecuteContext_Create_Args : PJRT_Head { PJRT_ExecuteContext *context; };
struct PJRT_ExecuteContext_Destroy_Args : PJRT_Head { PJRT_ExecuteContext *context; };
struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args : PJRT_Head {
  PJRT_LoadedExecutable *executable; const PJRT_LogicalDeviceIds *addressable_device_logical_ids;
  size_t num_addressable_device_logical_ids;
};
struct PJRT_LoadedExecutable_AddressableDevices_Args : PJRT_Head {
  PJRT_LoadedExecutable *executable; PJRT_Device *const *addressable_devices; size_t num_addressable_devices;
};
struct PJRT_LoadedExecutable_Delete_Args : PJRT_Head { PJRT_LoadedExecutable *executable; };
struct PJRT_LoadedExecutable_Destroy_Args : PJRT_Head { PJRT_LoadedExecutable *executable; };
struct PJRT_LoadedExecutable_Execute_Args : PJRT_Head {
  PJRT_LoadedExecutable *executable; PJRT_ExecuteOptions *options; PJRT_Buffer *const *const *argument_lists;
  size_t num_devices, num_args; PJRT_Buffer **const *output_lists; PJRT_Event **device_complete_events;
  PJRT_Device *execute_device;
};
struct PJRT_LoadedExecutable_Fingerprint_Args : PJRT_Head {
  PJRT_LoadedExecutable *executable; const char *executable_fingerprint; size_t executable_fingerprint_size;
};
struct PJRT_LoadedExecutable_GetDeviceAssignment_Args : PJRT_Head {
  PJRT_LoadedExecutable *executable; const char *serialized_bytes; size_t serialized_bytes_size;
  PJRT_Bytes *serialized_device_assignment; void (*serialized_device_assignment_deleter)(PJRT_Bytes *);
};
struct PJRT_LoadedExecutable_GetExecutable_Args : PJRT_Head {
  PJRT_LoadedExecutable *loaded_executable; PJRT_Executable *executable;
};
struct PJRT_LoadedExecutable_IsDeleted_Args : PJRT_Head { PJRT_LoadedExecutable *executable; bool is_deleted; };

/// The functions of the table, in its order.
#define PJRT_FUNCTIONS(F) \
  F(Error_Destroy) F(Error_Message) F(Error_GetCode) F(Plugin_Initialize) F(Plugin_Attributes) F(Event_Destroy) \
  F(Event_IsReady) F(Event_Error) F(Event_Await) F(Event_OnReady) F(Client_Create) F(Client_Destroy) \
  F(Client_PlatformName) F(Client_ProcessIndex) F(Client_PlatformVersion) F(Client_Devices) \
  F(Client_AddressableDevices) F(Client_LookupDevice) F(Client_LookupAddressableDevice) \
  F(Client_AddressableMemories) F(Client_Compile) F(Client_DefaultDeviceAssignment) F(Client_BufferFromHostBuffer) \
  F(DeviceDescription_Id) F(DeviceDescription_ProcessIndex) F(DeviceDescription_Attributes) \
  F(DeviceDescription_Kind) F(DeviceDescription_DebugString) F(DeviceDescription_ToString) F(Device_GetDescription) \
  F(Device_IsAddressable) F(Device_LocalHardwareId) F(Device_AddressableMemories) F(Device_DefaultMemory) \
  F(Device_MemoryStats) F(Memory_Id) F(Memory_Kind) F(Memory_DebugString) F(Memory_ToString) \
  F(Memory_AddressableByDevices) F(Executable_Destroy) F(Executable_Name) F(Executable_NumReplicas) \
  F(Executable_NumPartitions) F(Executable_NumOutputs) F(Executable_SizeOfGeneratedCodeInBytes) \
  F(Executable_GetCostAnalysis) F(Executable_OutputMemoryKinds) F(Executable_OptimizedProgram) \
  F(Executable_Serialize) F(LoadedExecutable_Destroy) F(LoadedExecutable_GetExecutable) \
  F(LoadedExecutable_AddressableDevices) F(LoadedExecutable_Delete) F(LoadedExecutable_IsDeleted) \
  F(LoadedExecutable_Execute) F(Executable_DeserializeAndLoad) F(LoadedExecutable_Fingerprint) F(Buffer_Destroy) \
  F(Buffer_ElementType) F(Buffer_Dimensions) F(Buffer_UnpaddedDimensions) F(Buffer_DynamicDimensionIndices) \
  F(Buffer_GetMemoryLayout) F(Buffer_OnDeviceSizeInBytes) F(Buffer_Device) F(Buffer_Memory) F(Buffer_Delete) \
  F(Buffer_IsDeleted) F(Buffer_CopyToDevice) F(Buffer_ToHostBuffer) F(Buffer_IsOnCpu) F(Buffer_ReadyEvent) \
  F(Buffer_UnsafePointer) F(Buffer_IncreaseExternalReferenceCount) F(Buffer_DecreaseExternalReferenceCount) \
  F(Buffer_OpaqueDeviceMemoryDataPointer) F(CopyToDeviceStream_Destroy) F(CopyToDeviceStream_AddChunk) \
  F(CopyToDeviceStream_TotalBytes) F(CopyToDeviceStream_GranuleSize) F(CopyToDeviceStream_CurrentBytes) \
  F(TopologyDescription_Create) F(TopologyDescription_Destroy) F(TopologyDescription_PlatformName) \
  F(TopologyDescription_PlatformVersion) F(TopologyDescription_GetDeviceDescriptions) \
  F(TopologyDescription_Serialize) F(TopologyDescription_Attributes) F(Compile) F(Executable_OutputElementTypes) \
  F(Executable_OutputDimensions) F(Buffer_CopyToMemory) F(Client_CreateViewOfDeviceBuffer) \
  F(Executable_Fingerprint) F(Client_TopologyDescription) F(Executable_GetCompiledMemoryStats) F(Memory_Kind_Id) \
  F(ExecuteContext_Create) F(ExecuteContext_Destroy) F(Buffer_CopyRawToHost) \
  F(AsyncHostToDeviceTransferManager_Destroy) F(AsyncHostToDeviceTransferManager_TransferData) \
  F(Client_CreateBuffersForAsyncHostToDevice) F(AsyncHostToDeviceTransferManager_RetrieveBuffer) \
  F(AsyncHostToDeviceTransferManager_Device) F(AsyncHostToDeviceTransferManager_BufferCount) \
  F(AsyncHostToDeviceTransferManager_BufferSize) F(AsyncHostToDeviceTransferManager_SetBufferError) \
  F(AsyncHostToDeviceTransferManager_AddMetadata) F(Client_DmaMap) F(Client_DmaUnmap) \
  F(Client_CreateUninitializedBuffer) F(Client_UpdateGlobalProcessInfo) F(TopologyDescription_Deserialize) \
  F(Client_CreateAliasBuffer) F(Client_FulfillAliasBuffer) F(LoadedExecutable_GetDeviceAssignment) \
  F(Client_CreateErrorBuffer) F(AsyncHostToDeviceTransferManager_TransferLiteral) F(Buffer_CopyRawToHostFuture) \
  F(Device_PoisonExecution) F(Device_CreateAsyncTrackingEvent) F(AsyncTrackingEvent_Destroy) \
  F(Executable_GetCompileOptions) F(Buffer_DonateWithControlDependency) F(Event_Create) F(Event_Set) \
  F(Device_GetAttributes) F(Client_Load) F(LoadedExecutable_AddressableDeviceLogicalIds) F(Buffer_Bitcast) \
  F(Error_ForEachPayload) F(TopologyDescription_Fingerprint) F(Executable_ParameterMemoryKinds) \
  F(Device_ClearMemoryStats) F(TopologyDescription_MakeCanonicalShapeForMemorySpace) \
  F(TopologyDescription_GetMemorySpaceKindIds)

#define PJRT_TABLE_ENTRY(name) struct PJRT_Error *(*PJRT_##name)(struct PJRT_##name##_Args *);
struct PJRT_Api : PJRT_Head {
  struct : PJRT_Head { int major_version, minor_version; } pjrt_api_version;
  PJRT_FUNCTIONS(PJRT_TABLE_ENTRY)
};
#undef PJRT_TABLE_ENTRY
