// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/request.h"

#include "triton/errors.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

namespace disc::triton {

namespace {

std::string list(const std::vector<int64_t> &sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string list(const std::vector<std::string> &texts) {
  std::string joined;
  for (const std::string &text : texts)
    joined += (joined.empty() ? "" : ", ") + text;
  return "[" + joined + "]";
}

[[noreturn]] void refuse(const Tensor &tensor, const std::string &what) {
  throw Failure(kInvalidArgument, "the input '" + tensor.name + "' " + what);
}

/// The bytes of an array; throws where they do not fit.
size_t bytes_of(const Tensor &tensor, const std::vector<int64_t> &shape) {
  auto bytes = static_cast<size_t>(type_of(tensor.dtype)->size);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes))
      refuse(tensor, "has the sizes " + list(shape) + ", which no array has");
  return bytes;
}

void check_shape(const Tensor &tensor, const std::vector<int64_t> &shape) {
  bool fits = std::ranges::equal(shape, tensor.sizes, [](int64_t given, int64_t size) { return size < 0 || given == size; });
  if (!fits)
    refuse(tensor, "has the sizes " + list(shape) + ", and the program takes " + list(tensor.texts));
}

/// The names of the outputs that a request wants.
std::vector<std::string_view> wanted_outputs(TRITONBACKEND_Request *request) {
  uint32_t count = 0;
  check(TRITONBACKEND_RequestOutputCount(request, &count));
  std::vector<std::string_view> names;
  for (uint32_t i = 0; i < count; ++i) {
    const char *name = nullptr;
    check(TRITONBACKEND_RequestOutputName(request, i, &name));
    names.emplace_back(name);
  }
  return names;
}

} // namespace

uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

void Request::read(const Model &model) {
  for (const Tensor &tensor : model.signature().inputs)
    inputs_.push_back(input(tensor));
  if (!model.has_batches())
    return;
  rows_ = inputs_[0].shape[0];
  for (size_t i = 0; i < inputs_.size(); ++i) {
    common_sizes_.insert(common_sizes_.end(), inputs_[i].shape.begin() + 1, inputs_[i].shape.end());
    if (inputs_[i].shape[0] != rows_)
      refuse(model.signature().inputs[i], "has a batch of " + std::to_string(inputs_[i].shape[0]) + ", and '" +
                                              model.signature().inputs[0].name + "' one of " + std::to_string(rows_));
  }
}

Input Request::input(const Tensor &tensor) const {
  TRITONBACKEND_Input *handle = nullptr;
  const int64_t *shape = nullptr;
  uint32_t rank = 0, buffers = 0;
  uint64_t given = 0;
  DataType type = kInvalid;
  check(TRITONBACKEND_RequestInput(handle_, tensor.name.c_str(), &handle));
  check(TRITONBACKEND_InputProperties(handle, nullptr, &type, &shape, &rank, &given, &buffers));
  if (type != type_of(tensor.dtype)->type)
    refuse(tensor, "is of another data type than " + std::string(type_of(tensor.dtype)->config));
  Input found{{shape, shape + rank}, {}, 0};
  check_shape(tensor, found.shape);
  found.bytes = bytes_of(tensor, found.shape);
  size_t taken = 0;
  for (uint32_t i = 0; i < buffers; ++i) {
    const void *piece = nullptr;
    uint64_t bytes = 0;
    MemoryType memory = kCpu;
    int64_t memory_id = 0;
    check(TRITONBACKEND_InputBuffer(handle, i, &piece, &bytes, &memory, &memory_id));
    if (memory == kGpu)
      refuse(tensor, "lies in the memory of a GPU, and the program runs on the processor: send it from the host's memory");
    if (bytes > 0)
      found.pieces.emplace_back(static_cast<const char *>(piece), bytes);
    taken += bytes;
  }
  if (taken != found.bytes)
    refuse(tensor, "has " + std::to_string(taken) + " bytes, and the sizes " + list(found.shape) + " take " +
                       std::to_string(found.bytes));
  return found;
}

void Request::write(TRITONBACKEND_Response *response, const Model &model, const disc_results_t *results,
                    int64_t row) const {
  std::vector<std::string_view> wanted = wanted_outputs(handle_);
  const std::vector<Tensor> &outputs = model.signature().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (std::ranges::find(wanted, outputs[i].name) == wanted.end())
      continue;
    const DLTensor &result = *disc_result(results, i);
    const TypeRow &type = *type_of(outputs[i].dtype);
    std::vector<int64_t> shape(result.shape, result.shape + result.ndim);
    size_t first = 0;
    if (model.has_batches()) {
      shape[0] = 1;
      first = bytes_of(outputs[i], shape) * static_cast<size_t>(row);
      shape[0] = rows_;
    }
    size_t bytes = bytes_of(outputs[i], shape);
    TRITONBACKEND_Output *output = nullptr;
    void *buffer = nullptr;
    MemoryType memory = kCpu;
    int64_t memory_id = 0;
    check(TRITONBACKEND_ResponseOutput(response, &output, outputs[i].name.c_str(), type.type, shape.data(),
                                       static_cast<uint32_t>(shape.size())));
    check(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &memory_id));
    if (memory == kGpu)
      throw Failure(kUnsupported, "the output '" + outputs[i].name +
                                      "' is to be in the memory of a GPU, and the program runs on the processor: ask for "
                                      "it in the host's memory");
    if (bytes > 0)
      std::memcpy(buffer, static_cast<const char *>(result.data) + first, bytes);
  }
}

void Request::answer(TRITONBACKEND_ModelInstance *instance, const Model &model, const disc_results_t *results,
                     int64_t row, const Times &times) noexcept {
  TRITONBACKEND_Response *response = nullptr;
  TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, handle_);
  bool success = error == nullptr;
  if (success) {
    TRITONSERVER_Error *failure = guarded([&] { write(response, model, results, row); });
    success = failure == nullptr;
    error = TRITONBACKEND_ResponseSend(response, kFinalResponse, failure);
    if (failure != nullptr)
      TRITONSERVER_ErrorDelete(failure);
  }
  log_failure(error);
  end(instance, success, times);
}

void Request::fail(TRITONBACKEND_ModelInstance *instance, TRITONSERVER_Error *failure, const Times &times) noexcept {
  TRITONBACKEND_Response *response = nullptr;
  TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, handle_);
  if (error == nullptr)
    error = TRITONBACKEND_ResponseSend(response, kFinalResponse, failure);
  log_failure(error);
  TRITONSERVER_ErrorDelete(failure);
  end(instance, false, times);
}

void Request::end(TRITONBACKEND_ModelInstance *instance, bool success, const Times &times) noexcept {
  log_failure(TRITONBACKEND_ModelInstanceReportStatistics(instance, handle_, success, times.start, times.compute_start,
                                                          times.compute_end, now()));
  log_failure(TRITONBACKEND_RequestRelease(handle_, kReleaseAll));
}

} // namespace disc::triton
