// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of a backend, which the server calls. It has one state for each backend, model and instance.
#include "triton/errors.h"
#include "triton/instance.h"
#include "triton/message.h"
#include "triton/model.h"

#include <memory>
#include <string>

using namespace disc::triton;

namespace {

void check_version() {
  uint32_t major = 0, minor = 0;
  check(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != kMajorVersion || minor < kMinorVersion)
    throw Failure(kUnsupported, "the server has version " + std::to_string(major) + "." + std::to_string(minor) +
                                    " of Triton's interface of backends, and shlo_disc needs " +
                                    std::to_string(kMajorVersion) + "." + std::to_string(kMinorVersion) +
                                    " or a later one of " + std::to_string(kMajorVersion));
}

BackendOptions options_of(TRITONBACKEND_Backend *backend) {
  TRITONSERVER_Message *message = nullptr;
  check(TRITONBACKEND_BackendConfig(backend, &message));
  disc::Json config = json_of(message);
  const disc::Json *given = config.member("cmdline");
  std::string trust = text_of(given, "trust"), blas = text_of(given, "blas");
  if (!trust.empty() && trust != "true" && trust != "false")
    throw Failure(kInvalidArgument, "--backend-config=shlo_disc,trust=" + trust + ": set it to true or false");
  if (!blas.empty())
    check(disc_open_blas(blas.c_str()));
  return {trust == "true"};
}

/// The state of an object of the server; null where its initialisation has failed.
template <typename State, typename Handle> State *state_of(Handle *handle, TRITONSERVER_Error *(*get)(Handle *, void **)) {
  void *state = nullptr;
  check(get(handle, &state));
  return static_cast<State *>(state);
}

} // namespace

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
  return guarded([&] {
    check_version();
    auto options = std::make_unique<BackendOptions>(options_of(backend));
    check(TRITONBACKEND_BackendSetState(backend, options.get()));
    options.release();
  });
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend) {
  return guarded([&] { delete state_of<BackendOptions>(backend, TRITONBACKEND_BackendState); });
}

TRITONSERVER_Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *,
                                                      TRITONBACKEND_BackendAttribute *attributes) {
  return guarded([&] {
    check(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, kCpuKind, 0, nullptr, 0));
    check(TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true));
  });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle) {
  return guarded([&] {
    TRITONBACKEND_Backend *backend = nullptr;
    check(TRITONBACKEND_ModelBackend(handle, &backend));
    auto model = std::make_unique<Model>(handle, *state_of<BackendOptions>(backend, TRITONBACKEND_BackendState));
    check(TRITONBACKEND_ModelSetState(handle, model.get()));
    model.release();
  });
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle) {
  return guarded([&] { delete state_of<Model>(handle, TRITONBACKEND_ModelState); });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle) {
  return guarded([&] {
    TRITONBACKEND_Model *model = nullptr;
    check(TRITONBACKEND_ModelInstanceModel(handle, &model));
    auto instance = std::make_unique<Instance>(handle, *state_of<Model>(model, TRITONBACKEND_ModelState));
    check(TRITONBACKEND_ModelInstanceSetState(handle, instance.get()));
    instance.release();
  });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle) {
  return guarded([&] { delete state_of<Instance>(handle, TRITONBACKEND_ModelInstanceState); });
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                       TRITONBACKEND_Request **requests, uint32_t count) {
  return guarded([&] {
    state_of<Instance>(handle, TRITONBACKEND_ModelInstanceState)->execute({requests, count});
  });
}
