// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs compiled onto devices, and brought there from bytes.
#include "program/trace.h"
#include "bytes.h"
#include "executable.h"

#include <algorithm>

namespace disc::pjrt {

namespace {

/// The devices of the assignment; without one the first devices, in order.
std::vector<int64_t> devices_of(const PJRT_Client &client, const CompileOptions &options) {
  return options.devices.empty() ? client.first_devices(options.replicas * options.partitions) : options.devices;
}

[[noreturn]] void fail_elsewhere() {
  fail_argument("none of the devices that the program is for is one of this process");
}

/// Whether the program's participants exchange anything.
bool has_collectives(const Program &program) {
  return std::ranges::any_of(program.calls, [](const CallSpec &call) { return !call.groups.empty(); });
}

} // namespace

Placement::Placement(PJRT_Client &client, const Code &code)
    : client(client), device_ids(devices_of(client, code.parsed_options)) {
  auto partitions = static_cast<int32_t>(code.parsed_options.partitions);
  for (size_t i = 0; i < device_ids.size(); ++i) {
    PJRT_Device &device = client.device(device_ids[i]);
    if (!device.is_addressable())
      continue;
    auto position = static_cast<int32_t>(i);
    participants.push_back(position);
    devices.push_back(&device);
    logical_ids.push_back({position / partitions, position % partitions});
  }
  if (devices.empty())
    fail_elsewhere();
  for (PJRT_Device *device : devices)
    code.on(*device);
  if (spans_processes() && !client.processes.transport && has_collectives(code.program()))
    throw Failure(PJRT_Error_Code_FAILED_PRECONDITION,
                  "a program with collectives needs an exchange between the processes, which there is not: " +
                      client.processes.obstacle);
}

} // namespace disc::pjrt

PJRT_LoadedExecutable::PJRT_LoadedExecutable(PJRT_Client &client, std::shared_ptr<const disc::pjrt::Code> code)
    : placement(std::make_shared<disc::pjrt::Placement>(client, *code)), code_(std::move(code)) {}

std::shared_ptr<const disc::pjrt::Code> PJRT_LoadedExecutable::loaded() const {
  std::lock_guard lock(mutex_);
  if (!code_)
    disc::pjrt::fail_argument("the executable has been deleted");
  return code_;
}

std::shared_ptr<const disc::pjrt::Code> PJRT_LoadedExecutable::compiled() {
  std::shared_ptr<const disc::pjrt::Code> before = loaded(), after = before->compiled(before);
  std::lock_guard lock(mutex_);
  if (code_ == before)
    code_ = after;
  return after;
}

void PJRT_LoadedExecutable::remove() {
  std::shared_ptr<const disc::pjrt::Code> released; // without the lock: it may wait for Python's
  std::lock_guard lock(mutex_);
  released.swap(code_);
}

bool PJRT_LoadedExecutable::is_deleted() const {
  std::lock_guard lock(mutex_);
  return !code_;
}

namespace disc::pjrt {

namespace {

/// The number of the GPU that a program is for, of several the first one of this process, or -1.
int gpu_for(const PJRT_Client &client, const CompileOptions &options) {
  if (!client.has_gpus())
    return -1;
  for (int64_t id : devices_of(client, options))
    if (client.device(id).is_addressable())
      return client.gpu_of(id);
  fail_elsewhere();
}

/// What a client compiles for. Where programs are counted, each is compiled; so are programs that are not trusted.
Purpose purpose_of(const PJRT_Client &client, const CompileOptions &options) {
  Purpose purpose{gpu_for(client, options), client.max_programs, client.compiler};
  if (client.trusts_programs && purpose.gpu < 0 && purpose.max_programs == 0)
    purpose.most_interpreted = int64_t{1000} * client.interpreted_microseconds;
  return purpose;
}

/// is_trusted: the program's bytes were made by a serialiser of this process. client: null where processors run it.
std::shared_ptr<const Code> compiled_code(const PJRT_Program &program, std::string options, bool is_trusted,
                                          const PJRT_Client *client) {
  SpanRecorder span(current_recording(), "compile");
  std::string source = given_text(program.code, program.code_size, "program.code");
  CompileOptions parsed(options);
  check_overrides(parsed);
  Purpose purpose = client ? purpose_of(*client, parsed) : Purpose{};
  std::string format = given_text(program.format, program.format_size, "program.format");
  if (format != "mlir")
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED, "programs come in the format 'mlir', not '" + format + "'");
  std::string checked = is_trusted ? source : read_untrusted(source, purpose);
  Compiled compiled;
  if (parsed.replicas * parsed.partitions == 1)
    compiled = compile(checked, purpose);
  else
    std::tie(compiled, source) = compile_for_devices(checked, parsed.replicas, parsed.partitions, purpose);
  return std::make_shared<const Code>(std::move(compiled), std::move(source), std::move(options));
}

template <typename Args> std::string options_of(const Args &args) {
  return given_text(args.compile_options, args.compile_options_size, "compile_options");
}

void client_compile(PJRT_Client_Compile_Args &args) {
  PJRT_Client &client = given(args.client, "client");
  auto code = compiled_code(given(args.program, "program"), options_of(args), client.trusts_programs, &client);
  args.executable = new PJRT_LoadedExecutable(client, std::move(code));
}

/// A program for the devices of a topology, which are this machine's.
void compile_without_client(PJRT_Compile_Args &args) {
  if (given(args.topology, "topology").platform != kPlatformName)
    fail_unimplemented("compiling for a topology of GPUs");
  require_compiler();
  args.executable = new PJRT_Executable{
      compiled_code(given(args.program, "program"), options_of(args), false, nullptr)};
}

void client_load(PJRT_Client_Load_Args &args) {
  args.loaded_executable =
      new PJRT_LoadedExecutable(given(args.client, "client"), given(args.executable, "executable").code);
}

void deserialize_and_load(PJRT_Executable_DeserializeAndLoad_Args &args) {
  PJRT_Client &client = given(args.client, "client");
  if (!client.trusts_executables)
    throw Failure(PJRT_Error_Code_PERMISSION_DENIED,
                  "the bytes hold native code from outside: if you know who made them, create the client with the option "
                  "trust, 1 or true, or set SHLO_DISC_TRUST=1");
  std::string options;
  if (has_field(args, args.overridden_serialized_compile_options_size))
    options = given_text(args.overridden_serialized_compile_options, args.overridden_serialized_compile_options_size,
                         "overridden_serialized_compile_options");
  Deserialized parts =
      deserialize({&given(args.serialized_executable, "serialized_executable"), args.serialized_executable_size},
                  std::move(options), [&](const std::string &text) { return gpu_for(client, CompileOptions(text)); });
  args.loaded_executable = new PJRT_LoadedExecutable(
      client, std::make_shared<const Code>(std::move(parts.compiled), std::move(parts.program),
                                           std::move(parts.options)));
}

PJRT_LoadedExecutable &executable_of(PJRT_LoadedExecutable *executable) { return given(executable, "executable"); }

void loaded_destroy(PJRT_LoadedExecutable_Destroy_Args &args) { delete args.executable; }

void loaded_get_executable(PJRT_LoadedExecutable_GetExecutable_Args &args) {
  args.executable = new PJRT_Executable{given(args.loaded_executable, "loaded_executable").loaded()};
}

void loaded_devices(PJRT_LoadedExecutable_AddressableDevices_Args &args) {
  args.addressable_devices = executable_of(args.executable).placement->devices.data();
  args.num_addressable_devices = args.executable->placement->devices.size();
}

void loaded_logical_ids(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args &args) {
  args.addressable_device_logical_ids = executable_of(args.executable).placement->logical_ids.data();
  args.num_addressable_device_logical_ids = args.executable->placement->logical_ids.size();
}

void loaded_delete(PJRT_LoadedExecutable_Delete_Args &args) { executable_of(args.executable).remove(); }

void loaded_is_deleted(PJRT_LoadedExecutable_IsDeleted_Args &args) {
  args.is_deleted = executable_of(args.executable).is_deleted();
}

/// Of the code, which the executable keeps unless it is deleted.
void loaded_fingerprint(PJRT_LoadedExecutable_Fingerprint_Args &args) {
  lend(executable_of(args.executable).loaded()->fingerprint, args.executable_fingerprint,
       args.executable_fingerprint_size);
}

void loaded_device_assignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args &args) {
  const PJRT_LoadedExecutable &executable = executable_of(args.executable);
  args.serialized_device_assignment =
      new PJRT_Bytes{device_assignment_message(executable.loaded()->parsed_options, executable.placement->device_ids)};
  args.serialized_device_assignment_deleter = delete_bytes;
  lend(args.serialized_device_assignment->contents, args.serialized_bytes, args.serialized_bytes_size);
}

} // namespace

void add_loaded_executable_functions(PJRT_Api &api) {
  api.PJRT_Client_Compile = entry<client_compile>;
  api.PJRT_Compile = entry<compile_without_client>;
  api.PJRT_Client_Load = entry<client_load>;
  api.PJRT_Executable_DeserializeAndLoad =
      entry_up_to<deserialize_and_load, &PJRT_Executable_DeserializeAndLoad_Args::loaded_executable>;
  api.PJRT_LoadedExecutable_Destroy = entry<loaded_destroy>;
  api.PJRT_LoadedExecutable_GetExecutable = entry<loaded_get_executable>;
  api.PJRT_LoadedExecutable_AddressableDevices = entry<loaded_devices>;
  api.PJRT_LoadedExecutable_AddressableDeviceLogicalIds = entry<loaded_logical_ids>;
  api.PJRT_LoadedExecutable_Delete = entry<loaded_delete>;
  api.PJRT_LoadedExecutable_IsDeleted = entry<loaded_is_deleted>;
  api.PJRT_LoadedExecutable_Fingerprint = entry<loaded_fingerprint>;
  api.PJRT_LoadedExecutable_GetDeviceAssignment = entry<loaded_device_assignment>;
}

} // namespace disc::pjrt
