// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs from a client of PJRT, without Python in its process. argv: the plugin, then for each call a file and two sizes.
// A file whose name ends in .disc is a compiled program; others are StableHLO, as text, bytecode or a portable artifact, and
// are compiled. Both take f32[b, s] and have one result of f32. What frameworks do with XLA's pjrt_c_api.h; the header here
// is ours of the same interface, and comes with the package.
//
//   python -c 'import jax, shlo_disc; shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),)).save("softmax.disc")'
//   plugin=$(python -c 'import shlo_disc; print(shlo_disc.get_pjrt_plugin())')
//   include=$(python -c 'import shlo_disc; print(shlo_disc.get_include())')
//   g++ -std=c++17 pjrt_client.cpp -I$include/pjrt -ldl -o client && ./client $plugin softmax.disc 2 3 softmax.disc 1 4
#include "pjrt_c_api.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const PJRT_Api *api = nullptr;

/// Arguments of a function, with their size as the interface wants it.
template <typename Args> Args arguments() {
  Args args{};
  args.struct_size = sizeof args;
  return args;
}

/// Throws what a function has failed with.
void check(PJRT_Error *error) {
  if (error == nullptr)
    return;
  auto message = arguments<PJRT_Error_Message_Args>();
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::string text(message.message, message.message_size);
  auto destroy = arguments<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
  throw std::runtime_error(text);
}

void load_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw std::runtime_error(dlerror());
  api = reinterpret_cast<const PJRT_Api *(*)()>(dlsym(library, "GetPjrtApi"))();
  auto args = arguments<PJRT_Plugin_Initialize_Args>();
  check(api->PJRT_Plugin_Initialize(&args));
}

/// A client that loads native code from files: we made them.
PJRT_Client *make_client() {
  auto trust = arguments<PJRT_NamedValue>();
  trust.name = "trust";
  trust.name_size = 5;
  trust.type = PJRT_NamedValue_kInt64;
  trust.int64_value = 1;
  trust.value_size = 1;
  auto args = arguments<PJRT_Client_Create_Args>();
  args.create_options = &trust;
  args.num_options = 1;
  check(api->PJRT_Client_Create(&args));
  return args.client;
}

std::string contents_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

PJRT_LoadedExecutable *compile(PJRT_Client *client, std::string stablehlo) {
  std::string format = "mlir";
  auto program = arguments<PJRT_Program>();
  program.code = stablehlo.data();
  program.code_size = stablehlo.size();
  program.format = format.data();
  program.format_size = format.size();
  auto args = arguments<PJRT_Client_Compile_Args>();
  args.client = client;
  args.program = &program;
  check(api->PJRT_Client_Compile(&args));
  return args.executable;
}

PJRT_LoadedExecutable *load(PJRT_Client *client, const std::string &bytes) {
  auto args = arguments<PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  check(api->PJRT_Executable_DeserializeAndLoad(&args));
  return args.loaded_executable;
}

PJRT_Device *first_device(PJRT_Client *client) {
  auto args = arguments<PJRT_Client_AddressableDevices_Args>();
  args.client = client;
  check(api->PJRT_Client_AddressableDevices(&args));
  return args.addressable_devices[0];
}

void wait_for(PJRT_Event *event) {
  auto wait = arguments<PJRT_Event_Await_Args>();
  wait.event = event;
  PJRT_Error *error = api->PJRT_Event_Await(&wait);
  auto destroy = arguments<PJRT_Event_Destroy_Args>();
  destroy.event = event;
  api->PJRT_Event_Destroy(&destroy);
  check(error);
}

PJRT_Buffer *buffer_of(PJRT_Client *client, const std::vector<float> &elements, const std::vector<int64_t> &sizes) {
  auto args = arguments<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client;
  args.data = elements.data();
  args.type = PJRT_Buffer_Type_F32;
  args.dims = sizes.data();
  args.num_dims = sizes.size();
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args.device = first_device(client);
  check(api->PJRT_Client_BufferFromHostBuffer(&args));
  wait_for(args.done_with_host_buffer);
  return args.buffer;
}

void destroy(PJRT_Buffer *buffer) {
  auto args = arguments<PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer;
  check(api->PJRT_Buffer_Destroy(&args));
}

PJRT_Buffer *execute(PJRT_LoadedExecutable *program, PJRT_Buffer *argument) {
  auto options = arguments<PJRT_ExecuteOptions>();
  PJRT_Buffer *const *device_arguments = &argument;
  PJRT_Buffer *result = nullptr, **device_results = &result;
  auto args = arguments<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = program;
  args.options = &options;
  args.argument_lists = &device_arguments;
  args.num_devices = 1;
  args.num_args = 1;
  args.output_lists = &device_results;
  check(api->PJRT_LoadedExecutable_Execute(&args));
  return result;
}

std::vector<float> elements_of(PJRT_Buffer *buffer) {
  auto args = arguments<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  check(api->PJRT_Buffer_ToHostBuffer(&args)); // says how many bytes there are
  std::vector<float> elements(args.dst_size / sizeof(float));
  args.dst = elements.data();
  check(api->PJRT_Buffer_ToHostBuffer(&args));
  wait_for(args.event);
  return elements;
}

void destroy(PJRT_LoadedExecutable *program) {
  auto args = arguments<PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = program;
  check(api->PJRT_LoadedExecutable_Destroy(&args));
}

/// Calls a program with numbers of eighths, and prints the result.
void call(PJRT_Client *client, PJRT_LoadedExecutable *program, const std::vector<int64_t> &sizes) {
  std::vector<float> input(static_cast<size_t>(sizes[0] * sizes[1]));
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>(i) / 8;
  PJRT_Buffer *argument = buffer_of(client, input, sizes), *result = execute(program, argument);
  for (float element : elements_of(result))
    std::printf("%.9g ", static_cast<double>(element));
  std::printf("\n");
  destroy(result);
  destroy(argument);
}

void run(int argc, char **argv) {
  load_plugin(argv[1]);
  PJRT_Client *client = make_client();
  std::map<std::string, PJRT_LoadedExecutable *> programs;
  for (int i = 2; i + 2 < argc; i += 3) {
    std::string path = argv[i];
    bool is_compiled = path.size() > 5 && path.substr(path.size() - 5) == ".disc";
    PJRT_LoadedExecutable *&program = programs[path];
    if (program == nullptr)
      program = is_compiled ? load(client, contents_of(path)) : compile(client, contents_of(path));
    call(client, program, {std::atoll(argv[i + 1]), std::atoll(argv[i + 2])});
  }
  for (auto &[path, program] : programs)
    destroy(program);
  auto args = arguments<PJRT_Client_Destroy_Args>();
  args.client = client;
  check(api->PJRT_Client_Destroy(&args));
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 5 || argc % 3 != 2) {
    std::fprintf(stderr, "usage: %s PLUGIN [FILE B S]...\n", argv[0]);
    return 2;
  }
  try {
    run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
