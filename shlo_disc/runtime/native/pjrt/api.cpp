// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of functions that a framework gets when it loads this library.
#include "executable.h"
#include "extensions.h"

#include <iterator>

namespace disc::pjrt {

namespace {

void plugin_initialize(PJRT_Plugin_Initialize_Args &) {}

PJRT_NamedValue named(const char *name, PJRT_NamedValue_Type type, size_t size) {
  PJRT_NamedValue value{};
  value.struct_size = sizeof value;
  value.name = name;
  value.name_size = std::char_traits<char>::length(name);
  value.type = type;
  value.value_size = size;
  return value;
}

template <size_t Count> PJRT_NamedValue version(const char *name, const int64_t (&numbers)[Count]) {
  PJRT_NamedValue value = named(name, PJRT_NamedValue_kInt64List, Count);
  value.int64_array_value = numbers;
  return value;
}

/// Which StableHLO frameworks may send: the compiler's bindings read all from the first stable version on.
void plugin_attributes(PJRT_Plugin_Attributes_Args &args) {
  static const int64_t current[] = {1, 17, 0}, minimum[] = {0, 9, 0};
  static const PJRT_NamedValue attributes[] = {
      [] {
        PJRT_NamedValue value = named("xla_version", PJRT_NamedValue_kInt64, 1);
        value.int64_value = 2; // of the calling conventions between XLA and frameworks
        return value;
      }(),
      version("stablehlo_current_version", current),
      version("stablehlo_minimum_version", minimum),
  };
  args.attributes = attributes;
  args.num_attributes = std::size(attributes);
}

PJRT_Error *unimplemented(const char *name) noexcept {
  try {
    fail_unimplemented(name);
  } catch (...) {
    return current_error();
  }
}

PJRT_Api make_api() {
  PJRT_Api api{};
  api.struct_size = sizeof api;
  api.extension_start = layouts_extension(ffi_extension(memory_descriptions_extension(profiler_extension(nullptr))));
  api.pjrt_api_version.struct_size = sizeof api.pjrt_api_version;
  api.pjrt_api_version.major_version = kPjrtMajorVersion;
  api.pjrt_api_version.minor_version = kPjrtMinorVersion;
#define DISC_UNIMPLEMENTED(name) api.PJRT_##name = [](PJRT_##name##_Args *) { return unimplemented("PJRT_" #name); };
  PJRT_FUNCTIONS(DISC_UNIMPLEMENTED)
#undef DISC_UNIMPLEMENTED
  api.PJRT_Plugin_Initialize = entry<plugin_initialize>;
  api.PJRT_Plugin_Attributes = entry<plugin_attributes>;
  add_error_functions(api);
  add_event_functions(api);
  add_client_functions(api);
  add_device_functions(api);
  add_memory_functions(api);
  add_topology_functions(api);
  add_buffer_functions(api);
  add_host_buffer_functions(api);
  add_transfer_manager_functions(api);
  add_executable_functions(api);
  add_loaded_executable_functions(api);
  add_execute_function(api);
  return api;
}

} // namespace

} // namespace disc::pjrt

/// What frameworks look for in a plugin.
extern "C" __attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi() {
  static const PJRT_Api api = disc::pjrt::make_api();
  return &api;
}
