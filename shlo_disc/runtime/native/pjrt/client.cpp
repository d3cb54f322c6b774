// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "client.h"

#include "compile.h"
#include "kernels/blas_library.h"

#include <algorithm>
#include <dlfcn.h>
#include <span>

namespace {

void describe(PJRT_DeviceDescription &description, const disc::pjrt::GpuDescription &gpu) {
  description.kind = gpu.name;
  description.compute_capability = gpu.compute_capability;
  description.text = "ShloDiscGpu(id=" + std::to_string(description.id) +
                     (description.process == 0 ? "" : ", process=" + std::to_string(description.process)) + ")";
}

} // namespace

PJRT_Client::PJRT_Client(disc::pjrt::Processes given, const disc::pjrt::ClientOptions &options)
    : processes(std::move(given)), trusts_programs(options.trusts_programs),
      trusts_executables(options.trust.value_or(disc::pjrt::trusts_executables())),
      is_asynchronous(options.is_asynchronous), max_programs(options.max_programs),
      interpreted_microseconds(options.interpreted_microseconds),
      compiler(disc::pjrt::make_compiler(options.compiler, options.compile_limit)), gpus(options.gpus),
      topology(processes.device_counts, true) {
  if (has_gpus())
    topology.platform = disc::pjrt::kGpuPlatformName;
  for (PJRT_DeviceDescription *description : topology.device_list) {
    bool is_addressable = description->process == processes.index;
    std::shared_ptr<disc::Device> runtime;
    const auto &of_process = processes.gpus[static_cast<size_t>(description->process)];
    if (!of_process.empty())
      describe(*description, of_process[static_cast<size_t>(description->local_id)]);
    if (is_addressable)
      runtime = has_gpus() ? disc::pjrt::gpu_device(gpus[static_cast<size_t>(description->local_id)])
                           : std::shared_ptr<disc::Device>(disc::default_device());
    devices.push_back(std::make_unique<PJRT_Device>(this, description, std::move(runtime)));
    PJRT_Device &device = *devices.back();
    device_list.push_back(&device);
    if (is_addressable)
      addressable_list.push_back(&device);
    memory_list.insert(memory_list.end(), device.memory_list.begin(), device.memory_list.end());
  }
}

PJRT_Client::~PJRT_Client() {
  for (PJRT_Device *device : addressable_list)
    device->worker.finish();
  disc::cuda::close_groups(groups);
}

PJRT_Device &PJRT_Client::device(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(devices.size()))
    disc::pjrt::fail_argument("there is no device " + std::to_string(id) + "; there are " +
                              std::to_string(devices.size()));
  return *devices[static_cast<size_t>(id)];
}

int PJRT_Client::gpu_of(int64_t id) const {
  const PJRT_Device &found = device(id);
  return has_gpus() ? gpus[static_cast<size_t>(found.description->local_id)] : -1;
}

std::vector<int64_t> PJRT_Client::first_devices(int64_t count) const {
  bool are_here = count <= static_cast<int64_t>(addressable_list.size());
  const std::vector<PJRT_Device *> &from = are_here ? addressable_list : device_list;
  if (count < 1 || count > static_cast<int64_t>(from.size()))
    disc::pjrt::fail_argument("there are not as many devices as replicas times partitions");
  std::vector<int64_t> ids;
  for (PJRT_Device *device : std::span(from).first(static_cast<size_t>(count)))
    ids.push_back(device->description->id);
  return ids;
}

uint64_t PJRT_Client::next_run(const std::vector<int64_t> &device_ids) {
  std::lock_guard lock(mutex_);
  return runs_[device_ids]++;
}

namespace disc::pjrt {

const std::string &platform_version() {
  static const std::string version = "shlo_disc, CPU";
  return version;
}

namespace {

PJRT_Client &client_of(PJRT_Client *client) { return given(client, "client"); }

/// Programs hold its functions: it is never closed.
void open_blas(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail_argument(std::string("the option blas: ") + dlerror());
  if (install_blas(library))
    return;
  dlclose(library);
  fail_argument("the option blas: " + path + kNoBlas);
}

void client_create(PJRT_Client_Create_Args &args) {
  ClientOptions options(args.create_options, args.num_options);
  if (!options.blas.empty())
    open_blas(options.blas);
  args.client = new PJRT_Client(join(options, args), options);
}

void client_destroy(PJRT_Client_Destroy_Args &args) { delete args.client; }

void client_platform_name(PJRT_Client_PlatformName_Args &args) {
  lend(client_of(args.client).topology.platform, args.platform_name, args.platform_name_size);
}

void client_platform_version(PJRT_Client_PlatformVersion_Args &args) {
  client_of(args.client);
  lend(platform_version(), args.platform_version, args.platform_version_size);
}

void client_process_index(PJRT_Client_ProcessIndex_Args &args) {
  args.process_index = client_of(args.client).processes.index;
}

void client_devices(PJRT_Client_Devices_Args &args) {
  args.devices = client_of(args.client).device_list.data();
  args.num_devices = args.client->device_list.size();
}

void client_addressable_devices(PJRT_Client_AddressableDevices_Args &args) {
  args.addressable_devices = client_of(args.client).addressable_list.data();
  args.num_addressable_devices = args.client->addressable_list.size();
}

void client_addressable_memories(PJRT_Client_AddressableMemories_Args &args) {
  args.addressable_memories = client_of(args.client).memory_list.data();
  args.num_addressable_memories = args.client->memory_list.size();
}

void client_lookup_device(PJRT_Client_LookupDevice_Args &args) {
  args.device = &client_of(args.client).device(args.id);
}

void client_lookup_addressable_device(PJRT_Client_LookupAddressableDevice_Args &args) {
  const std::vector<PJRT_Device *> &devices = client_of(args.client).addressable_list;
  if (args.local_hardware_id < 0 || static_cast<size_t>(args.local_hardware_id) >= devices.size())
    fail_argument("this process has no device " + std::to_string(args.local_hardware_id) + "; it has " +
                  std::to_string(devices.size()));
  args.addressable_device = devices[static_cast<size_t>(args.local_hardware_id)];
}

void client_topology_description(PJRT_Client_TopologyDescription_Args &args) {
  args.topology = &client_of(args.client).topology;
}

/// Replicas, and in each its partitions, take the devices in order.
void client_default_device_assignment(PJRT_Client_DefaultDeviceAssignment_Args &args) {
  const PJRT_Client &client = client_of(args.client);
  int64_t count = args.num_replicas < 1 ? 0 : int64_t{args.num_replicas} * args.num_partitions;
  std::vector<int64_t> ids = client.first_devices(count);
  if (args.default_assignment_size < ids.size())
    fail_argument("the list for the assignment is too short");
  std::ranges::copy(ids, &given(args.default_assignment, "default_assignment"));
}

/// How the framework sees the job's processes, whenever that changes.
void client_update_global_process_info(PJRT_Client_UpdateGlobalProcessInfo_Args &args) {
  Transport *transport = client_of(args.client).processes.transport.get();
  const auto *at = reinterpret_cast<const char *>(args.process_infos);
  for (size_t i = 0; i < args.num_process_infos; ++i) {
    const PJRT_ProcessInfo &info = given(reinterpret_cast<const PJRT_ProcessInfo *>(at), "process_infos");
    at += info.struct_size;
    if (!transport || (info.state != PJRT_ProcessState_kDisconnected && info.state != PJRT_ProcessState_kError))
      continue;
    std::string how = "has left the job";
    if (info.error_message_size > 0)
      how += ": " + given_text(info.error_message, info.error_message_size, "error_message");
    transport->set_gone(info.task_id, how);
  }
}

} // namespace

void add_client_functions(PJRT_Api &api) {
  api.PJRT_Client_Create = entry_up_to<client_create, &PJRT_Client_Create_Args::client>;
  api.PJRT_Client_Destroy = entry<client_destroy>;
  api.PJRT_Client_PlatformName = entry<client_platform_name>;
  api.PJRT_Client_PlatformVersion = entry<client_platform_version>;
  api.PJRT_Client_ProcessIndex = entry<client_process_index>;
  api.PJRT_Client_Devices = entry<client_devices>;
  api.PJRT_Client_AddressableDevices = entry<client_addressable_devices>;
  api.PJRT_Client_AddressableMemories = entry<client_addressable_memories>;
  api.PJRT_Client_LookupDevice = entry<client_lookup_device>;
  api.PJRT_Client_LookupAddressableDevice = entry<client_lookup_addressable_device>;
  api.PJRT_Client_TopologyDescription = entry<client_topology_description>;
  api.PJRT_Client_UpdateGlobalProcessInfo = entry<client_update_global_process_info>;
  api.PJRT_Client_DefaultDeviceAssignment = entry<client_default_device_assignment>;
}

} // namespace disc::pjrt
