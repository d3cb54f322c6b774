// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A server of one model in this process: the functions of Triton that the backend uses, and functions to drive it from
// Python. It counts what the backend is given and has to release.
#include "triton/server_api.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <vector>

using namespace disc::triton;

namespace {

std::atomic<int64_t> live{0}; // errors, messages, responses, and requests that are not released
std::atomic<int64_t> statistics[4]; // successes, failures, calls, rows of calls
std::atomic<int> outputs_to_fail{0}, responses_to_fail{0};
uint32_t minor_version = kMinorVersion;
std::string backend_config = R"({"cmdline": {}})";
std::string logged;
std::mutex log_mutex;
void *library = nullptr;

template <typename Function> Function *entry(const char *name) {
  return reinterpret_cast<Function *>(dlsym(library, name));
}

} // namespace

struct TRITONSERVER_Error {
  ErrorCode code;
  std::string text;
};
struct TRITONSERVER_Message {
  std::string text;
};
struct TRITONBACKEND_Backend {
  void *state = nullptr;
  TRITONSERVER_Message config;
};
struct TRITONBACKEND_BackendAttribute {
  std::vector<InstanceKind> kinds;
  bool is_parallel = false;
};
struct TRITONBACKEND_Model {
  std::string name, folder, config, completed;
  bool completes = true;
  TRITONBACKEND_Backend *backend = nullptr;
  void *state = nullptr;
};
struct TRITONBACKEND_ModelInstance {
  TRITONBACKEND_Model *model;
  InstanceKind kind;
  void *state = nullptr;
};
struct Piece {
  std::vector<char> bytes;
  MemoryType memory;
};
struct TRITONBACKEND_Input {
  std::string name;
  DataType type;
  std::vector<int64_t> shape;
  std::deque<Piece> pieces;
};
struct TRITONBACKEND_Output {
  std::string name;
  DataType type;
  std::vector<int64_t> shape;
  std::vector<char> memory; // the buffer begins behind its first byte, so that it is not aligned
};
struct TRITONBACKEND_Request {
  std::deque<TRITONBACKEND_Input> inputs;
  std::vector<std::string> outputs;
  TRITONBACKEND_Response *response = nullptr;
  int releases = 0, reports = 0;
};
struct TRITONBACKEND_Response {
  TRITONBACKEND_Request *request;
  std::deque<TRITONBACKEND_Output> outputs;
  int sends = 0, code = -1;
  std::string error;
};

extern "C" {

TRITONSERVER_Error *TRITONSERVER_ErrorNew(ErrorCode code, const char *text) {
  ++live;
  return new TRITONSERVER_Error{code, text};
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error) {
  --live;
  delete error;
}
ErrorCode TRITONSERVER_ErrorCode(TRITONSERVER_Error *error) { return error->code; }
const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error) { return error->text.c_str(); }
TRITONSERVER_Error *TRITONSERVER_LogMessage(LogLevel level, const char *, int, const char *text) {
  std::lock_guard lock(log_mutex);
  logged += std::to_string(level) + " " + text + "\n";
  return nullptr;
}
TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message, const char *text,
                                                              size_t size) {
  ++live;
  *message = new TRITONSERVER_Message{std::string(text, size)};
  return nullptr;
}
TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message) {
  --live;
  delete message;
  return nullptr;
}
TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message, const char **text, size_t *size) {
  *text = message->text.data(), *size = message->text.size();
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor) {
  *major = kMajorVersion, *minor = minor_version;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *backend, TRITONSERVER_Message **config) {
  *config = &backend->config;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_BackendState(TRITONBACKEND_Backend *backend, void **state) {
  *state = backend->state;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *backend, void *state) {
  backend->state = state;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(TRITONBACKEND_BackendAttribute *attributes,
                                                                            InstanceKind kind, uint64_t,
                                                                            const uint64_t *, uint64_t) {
  attributes->kinds.push_back(kind);
  return nullptr;
}
TRITONSERVER_Error *
TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(TRITONBACKEND_BackendAttribute *attributes, bool enabled) {
  attributes->is_parallel = enabled;
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **name) {
  *name = model->name.c_str();
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *, uint64_t *version) {
  *version = 1;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model, ArtifactType *type,
                                                  const char **location) {
  *type = kFilesystem, *location = model->folder.c_str();
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, uint32_t, TRITONSERVER_Message **config) {
  return TRITONSERVER_MessageNewFromSerializedJson(config, model->config.data(), model->config.size());
}
TRITONSERVER_Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model, bool *complete) {
  *complete = model->completes;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model, uint32_t, TRITONSERVER_Message *config) {
  model->completed = config->text;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *model, TRITONBACKEND_Backend **backend) {
  *backend = model->backend;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **state) {
  *state = model->state;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state) {
  model->state = state;
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance, const char **name) {
  *name = instance->model->name.c_str();
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance, InstanceKind *kind) {
  *kind = instance->kind;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                                     TRITONBACKEND_Model **model) {
  *model = instance->model;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **state) {
  *state = instance->state;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state) {
  instance->state = state;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance *,
                                                                TRITONBACKEND_Request *request, bool success,
                                                                uint64_t start, uint64_t compute_start,
                                                                uint64_t compute_end, uint64_t end) {
  ++request->reports;
  bool in_order = 0 < start && start <= compute_start && compute_start <= compute_end && compute_end <= end;
  ++statistics[success && in_order ? 0 : 1];
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance *, uint64_t batch_size,
                                                                     uint64_t, uint64_t, uint64_t, uint64_t) {
  ++statistics[2];
  statistics[3] += static_cast<int64_t>(batch_size);
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name,
                                               TRITONBACKEND_Input **input) {
  for (TRITONBACKEND_Input &one : request->inputs)
    if (one.name == name) {
      *input = &one;
      return nullptr;
    }
  return TRITONSERVER_ErrorNew(kInvalidArgument, (std::string("unknown request input '") + name + "'").c_str());
}
TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *count) {
  *count = static_cast<uint32_t>(request->outputs.size());
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, uint32_t index, const char **name) {
  *name = request->outputs[index].c_str();
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t) {
  --live;
  ++request->releases;
  for (TRITONBACKEND_Input &input : request->inputs) // whoever reads it later finds nothing
    input.pieces.clear();
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **, DataType *type,
                                                  const int64_t **shape, uint32_t *rank, uint64_t *bytes,
                                                  uint32_t *buffers) {
  *type = input->type, *shape = input->shape.data(), *rank = static_cast<uint32_t>(input->shape.size());
  *buffers = static_cast<uint32_t>(input->pieces.size());
  *bytes = 0;
  for (const Piece &piece : input->pieces)
    *bytes += piece.bytes.size();
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, uint32_t index, const void **buffer,
                                              uint64_t *bytes, MemoryType *memory, int64_t *memory_id) {
  const Piece &piece = input->pieces[index];
  *buffer = piece.bytes.data(), *bytes = piece.bytes.size(), *memory = piece.memory, *memory_id = 0;
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *request) {
  if (responses_to_fail > 0 && responses_to_fail-- > 0)
    return TRITONSERVER_ErrorNew(kInternal, "there are no responses");
  ++live;
  *response = request->response = new TRITONBACKEND_Response{request, {}, 0, -1, ""};
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response, TRITONBACKEND_Output **output,
                                                 const char *name, DataType type, const int64_t *shape, uint32_t rank) {
  *output = &response->outputs.emplace_back(TRITONBACKEND_Output{name, type, {shape, shape + rank}, {}});
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, uint32_t, TRITONSERVER_Error *error) {
  --live;
  ++response->sends;
  if (error != nullptr)
    response->code = error->code, response->error = error->text;
  return nullptr;
}
TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **buffer, uint64_t bytes, MemoryType *,
                                               int64_t *) {
  if (outputs_to_fail > 0 && outputs_to_fail-- > 0)
    return TRITONSERVER_ErrorNew(kUnavailable, "there is no memory for the output");
  output->memory.resize(bytes + 1);
  *buffer = bytes == 0 ? nullptr : output->memory.data() + 1;
  return nullptr;
}

// ---- What Python calls ----

/// "" or the text of an error, which is deleted.
static const char *told(TRITONSERVER_Error *error) {
  static thread_local std::string text;
  text = error != nullptr ? std::to_string(error->code) + " " + error->text : "";
  if (error != nullptr)
    TRITONSERVER_ErrorDelete(error);
  return text.c_str();
}

const char *fake_open(const char *path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? "" : dlerror();
}
int64_t fake_live() { return live; }
void fake_statistics(int64_t *values) {
  for (int i = 0; i < 4; ++i)
    values[i] = statistics[i].exchange(0);
}
void fake_fail(int outputs, int responses) { outputs_to_fail = outputs, responses_to_fail = responses; }
void fake_version(uint32_t minor) { minor_version = minor; }
const char *fake_log() {
  static std::string text;
  std::lock_guard lock(log_mutex);
  text = logged;
  logged.clear();
  return text.c_str();
}

const char *fake_backend(const char *config, TRITONBACKEND_Backend **backend) {
  *backend = new TRITONBACKEND_Backend{nullptr, {config}};
  return told(entry<decltype(TRITONBACKEND_Initialize)>("TRITONBACKEND_Initialize")(*backend));
}
const char *fake_end_backend(TRITONBACKEND_Backend *backend) {
  const char *text = told(entry<decltype(TRITONBACKEND_Finalize)>("TRITONBACKEND_Finalize")(backend));
  delete backend;
  return text;
}
const char *fake_attributes(TRITONBACKEND_Backend *backend, int *kind, int *is_parallel) {
  TRITONBACKEND_BackendAttribute attributes;
  auto *get = entry<decltype(TRITONBACKEND_GetBackendAttribute)>("TRITONBACKEND_GetBackendAttribute");
  const char *text = told(get(backend, &attributes));
  *kind = attributes.kinds.at(0), *is_parallel = attributes.is_parallel;
  return text;
}

const char *fake_model(TRITONBACKEND_Backend *backend, const char *name, const char *folder, const char *config,
                       int completes, TRITONBACKEND_Model **model) {
  *model = new TRITONBACKEND_Model{name, folder, config, "", completes != 0, backend, nullptr};
  return told(entry<decltype(TRITONBACKEND_ModelInitialize)>("TRITONBACKEND_ModelInitialize")(*model));
}
const char *fake_completed(TRITONBACKEND_Model *model) { return model->completed.c_str(); }
const char *fake_end_model(TRITONBACKEND_Model *model) {
  const char *text = told(entry<decltype(TRITONBACKEND_ModelFinalize)>("TRITONBACKEND_ModelFinalize")(model));
  delete model;
  return text;
}
const char *fake_instance(TRITONBACKEND_Model *model, int kind, TRITONBACKEND_ModelInstance **instance) {
  *instance = new TRITONBACKEND_ModelInstance{model, static_cast<InstanceKind>(kind), nullptr};
  auto *initialize = entry<decltype(TRITONBACKEND_ModelInstanceInitialize)>("TRITONBACKEND_ModelInstanceInitialize");
  return told(initialize(*instance));
}
const char *fake_end_instance(TRITONBACKEND_ModelInstance *instance) {
  auto *finalize = entry<decltype(TRITONBACKEND_ModelInstanceFinalize)>("TRITONBACKEND_ModelInstanceFinalize");
  const char *text = told(finalize(instance));
  delete instance;
  return text;
}

TRITONBACKEND_Request *fake_request() {
  ++live;
  return new TRITONBACKEND_Request;
}
void fake_input(TRITONBACKEND_Request *request, const char *name, int type, const int64_t *shape, size_t rank) {
  request->inputs.push_back({name, static_cast<DataType>(type), {shape, shape + rank}, {}});
}
void fake_piece(TRITONBACKEND_Request *request, const char *bytes, size_t size, int memory) {
  request->inputs.back().pieces.push_back({{bytes, bytes + size}, static_cast<MemoryType>(memory)});
}
void fake_want(TRITONBACKEND_Request *request, const char *name) { request->outputs.emplace_back(name); }

const char *fake_execute(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count) {
  auto *execute = entry<decltype(TRITONBACKEND_ModelInstanceExecute)>("TRITONBACKEND_ModelInstanceExecute");
  return told(execute(instance, requests, count));
}

/// Released and reported once, and answered once or, where there was no response, never.
int fake_is_done(TRITONBACKEND_Request *request) {
  return request->releases == 1 && request->reports == 1 && (request->response == nullptr || request->response->sends == 1);
}
int fake_code(TRITONBACKEND_Request *request) { return request->response != nullptr ? request->response->code : -2; }
const char *fake_error(TRITONBACKEND_Request *request) { return request->response->error.c_str(); }
size_t fake_outputs(TRITONBACKEND_Request *request) { return request->response->outputs.size(); }
const char *fake_output(TRITONBACKEND_Request *request, size_t index, int *type, const int64_t **shape, size_t *rank,
                        const char **bytes, size_t *size) {
  const TRITONBACKEND_Output &output = request->response->outputs[index];
  *type = output.type, *shape = output.shape.data(), *rank = output.shape.size();
  *bytes = output.memory.data() + 1, *size = output.memory.size() - 1;
  return output.name.c_str();
}
void fake_end_request(TRITONBACKEND_Request *request) {
  delete request->response;
  delete request;
}

} // extern "C"
