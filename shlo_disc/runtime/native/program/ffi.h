// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The binary interface of XLA's FFI handlers, version 0.3: the structures as handlers compiled against xla/ffi/api/c_api.h
// see them. The order of fields is the interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace disc::ffi {

constexpr int kMajorVersion = 0;
constexpr int kMinorVersion = 3;

struct Extension {
  size_t struct_size;
  int32_t type; // 1: metadata
  Extension *next;
};
constexpr int32_t kMetadata = 1;

struct Version {
  size_t struct_size;
  Extension *extensions;
  int major;
  int minor;
};

struct Metadata {
  size_t struct_size;
  Version version;
  uint32_t traits;
  int64_t state_type;
};
constexpr size_t kMetadataSize = offsetof(Metadata, traits) + sizeof(uint32_t);

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

struct Error; // ours: see ffi.cpp
struct Context;

struct Buffer {
  size_t struct_size;
  Extension *extensions;
  int32_t dtype;
  void *data;
  int64_t rank;
  const int64_t *dims;
};

struct Bytes {
  const char *data;
  size_t size;
};

struct Scalar {
  int32_t dtype;
  const void *value;
};

struct Array {
  int32_t dtype;
  size_t size;
  const void *data;
};

enum AttributeType : int32_t { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };
constexpr int32_t kBuffer = 1;

/// Operands, and results: `types` are all kBuffer.
struct Arguments {
  size_t struct_size;
  Extension *extensions;
  int64_t size;
  const int32_t *types;
  void **values;
};

struct Attributes {
  size_t struct_size;
  Extension *extensions;
  int64_t size;
  const int32_t *types;
  Bytes **names;
  void **values;
};

enum Stage : int32_t { kInstantiate = 0, kPrepare = 1, kInitialize = 2, kExecute = 3 };

struct Api;

struct CallFrame {
  size_t struct_size;
  Extension *extensions;
  const Api *api;
  Context *context;
  int32_t stage;
  Arguments operands;
  Arguments results;
  Attributes attributes;
  void *future; // out
};
/// Handlers compare it: the fields that came with the first version.
constexpr size_t kCallFrameSize = offsetof(CallFrame, future);

using Handler = Error *(CallFrame *);

/// The first two fields of every argument structure.
struct Head {
  size_t struct_size;
  Extension *extensions;
};

struct ErrorCreate : Head {
  const char *message;
  int32_t code;
};
struct ErrorMessage : Head {
  Error *error;
  const char *message; // out
};
struct ErrorDestroy : Head {
  Error *error;
};
struct Schedule : Head {
  Context *context;
  void (*task)(void *data);
  void *data;
};
struct ThreadCount : Head {
  Context *context;
  int64_t *count;
};
struct RunId : Head {
  Context *context;
  int64_t id; // out
};
struct DeviceOrdinal : Head {
  Context *context;
  int32_t ordinal; // out
};

/// Functions that a handler may call. Those about streams, devices, states and futures answer with an error.
struct Api {
  size_t struct_size;
  Extension *extensions;
  Version version;
  const void *internal;
  Error *(*error_create)(ErrorCreate *);
  void (*error_message)(ErrorMessage *);
  void (*error_destroy)(ErrorDestroy *);
  Error *(*handler_register)(Head *);
  Error *(*stream_get)(Head *);
  Error *(*type_register)(Head *);
  Error *(*context_get)(Head *);
  Error *(*state_set)(Head *);
  Error *(*state_get)(Head *);
  Error *(*memory_allocate)(Head *);
  Error *(*memory_free)(Head *);
  Error *(*schedule)(Schedule *);
  Error *(*thread_count)(ThreadCount *);
  Error *(*future_create)(Head *);
  Error *(*future_set_available)(Head *);
  Error *(*future_set_error)(Head *);
  Error *(*run_id)(RunId *);
  Error *(*device_ordinal)(DeviceOrdinal *);
};

/// The number of xla::PrimitiveType for an element type of ours, such as "f32"; 0 where there is none.
int32_t dtype_number(const std::string &name);

} // namespace disc::ffi
