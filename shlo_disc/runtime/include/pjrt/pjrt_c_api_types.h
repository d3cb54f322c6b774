// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the functions of PJRT's binary interface, version 0.112, have in common: the numbers and the structures that
// several of them take, of XLA's xla/pjrt/c/pjrt_c_api.h as far as they are used here. The order of fields is the
// interface.
#pragma once

#include <cstddef>
#include <cstdint>

constexpr int kPjrtMajorVersion = 0;
constexpr int kPjrtMinorVersion = 112;

struct PJRT_AsyncHostToDeviceTransferManager;
struct PJRT_Buffer;
struct PJRT_Bytes; // what a serialized thing lies in
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_ExecuteContext;
struct PJRT_LoadedExecutable;
struct PJRT_TopologyDescription;

struct PJRT_Extension_Base {
  size_t struct_size;
  int32_t type;
  PJRT_Extension_Base *next;
};

/// The first two fields of every structure of arguments, and of many others.
struct PJRT_Head {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
};

enum PJRT_Error_Code : int32_t {
  PJRT_Error_Code_OK = 0, PJRT_Error_Code_CANCELLED = 1, PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3, PJRT_Error_Code_DEADLINE_EXCEEDED = 4, PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6, PJRT_Error_Code_PERMISSION_DENIED = 7, PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9, PJRT_Error_Code_ABORTED = 10, PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12, PJRT_Error_Code_INTERNAL = 13, PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15, PJRT_Error_Code_UNAUTHENTICATED = 16,
};

enum PJRT_Buffer_Type : int32_t {
  PJRT_Buffer_Type_INVALID = 0, PJRT_Buffer_Type_PRED = 1, PJRT_Buffer_Type_S8 = 2, PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4, PJRT_Buffer_Type_S64 = 5, PJRT_Buffer_Type_U8 = 6, PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8, PJRT_Buffer_Type_U64 = 9, PJRT_Buffer_Type_F16 = 10, PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12, PJRT_Buffer_Type_BF16 = 13, PJRT_Buffer_Type_C64 = 14, PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16, PJRT_Buffer_Type_F8E4M3FN = 17, PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19, PJRT_Buffer_Type_F8E4M3FNUZ = 20, PJRT_Buffer_Type_S4 = 21,
  PJRT_Buffer_Type_U4 = 22, PJRT_Buffer_Type_TOKEN = 23, PJRT_Buffer_Type_S2 = 24, PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26, PJRT_Buffer_Type_F8E3M4 = 27, PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29, PJRT_Buffer_Type_S1 = 30, PJRT_Buffer_Type_U1 = 31, PJRT_Buffer_Type_F6E2M3FN = 32,
  PJRT_Buffer_Type_F6E3M2FN = 33,
};

enum PJRT_NamedValue_Type : int32_t {
  PJRT_NamedValue_kString = 0, PJRT_NamedValue_kInt64 = 1, PJRT_NamedValue_kInt64List = 2, PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4,
};

enum PJRT_ProcessState : uint32_t {
  PJRT_ProcessState_kUnspecified = 0, PJRT_ProcessState_kUninitialized = 1, PJRT_ProcessState_kDisconnected = 2,
  PJRT_ProcessState_kConnected = 3, PJRT_ProcessState_kError = 4,
};

enum PJRT_HostBufferSemantics : int32_t {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0, PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2, PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
};

enum PJRT_Buffer_MemoryLayout_Type : int32_t {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0, PJRT_Buffer_MemoryLayout_Type_Strides = 1,
};

using PJRT_Event_OnReadyCallback = void (*)(struct PJRT_Error *error, void *user_arg);
using PJRT_Error_PayloadVisitor = void (*)(const char *key, size_t key_size, const char *value, size_t value_size,
                                           void *user_arg);

/// How frameworks newer than this version reach an error; all errors begin with its address.
struct PJRT_Error_FunctionTable {
  size_t struct_size, instance_size;
  PJRT_Extension_Base *extension_start;
  void (*destroy)(PJRT_Error *error);
  void (*message)(const PJRT_Error *error, const char **message, size_t *message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error *error);
  void (*for_each_payload)(const PJRT_Error *error, PJRT_Error_PayloadVisitor visitor, void *user_arg);
};

/// The same for memories, whose users attach data of their own to them.
struct PJRT_Memory_FunctionTable : PJRT_Head {
  size_t instance_struct_size;
  void *(*get_user_data)(struct PJRT_Memory *memory, const void *key);
  void (*set_user_data)(PJRT_Memory *memory, const void *key, void *data, void (*deleter)(void *));
};

struct PJRT_NamedValue : PJRT_Head {
  const char *name; size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size; // characters or elements; 1 for a number
};

struct PJRT_Buffer_MemoryLayout_Tiled : PJRT_Head {
  const int64_t *minor_to_major; size_t minor_to_major_size;
  const int64_t *tile_dims; const size_t *tile_dim_sizes; size_t num_tiles;
};
struct PJRT_Buffer_MemoryLayout_Strides : PJRT_Head { const int64_t *byte_strides; size_t num_byte_strides; };
struct PJRT_Buffer_MemoryLayout : PJRT_Head {
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
};

struct PJRT_Program : PJRT_Head { char *code; size_t code_size; const char *format; size_t format_size; };
struct PJRT_ShapeSpec : PJRT_Head { const int64_t *dims; size_t num_dims; PJRT_Buffer_Type element_type; };
struct PJRT_LogicalDeviceIds { int32_t replica, partition; };
struct PJRT_ExecuteOptions : PJRT_Head {
  void *send_callbacks; void *recv_callbacks; size_t num_send_ops, num_recv_ops; int32_t launch_id;
  const int64_t *non_donatable_input_indices; size_t num_non_donatable_input_indices; PJRT_ExecuteContext *context;
  const char *call_location; size_t num_tasks; void *task_ids; void *incarnation_ids; void *multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks; void *hlo_output_callbacks; size_t num_hlo_output_callbacks;
};
