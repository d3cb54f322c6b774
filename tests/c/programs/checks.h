// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the test programs share: a failed check ends the process with its line.
#pragma once

#include "shlo_disc.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                      \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)

/// Ends the process when there is an error.
#define CHECK_OK(call)                                                                                                 \
  do {                                                                                                                 \
    if (disc_error_t *error = (call)) {                                                                                \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, disc_error_kind(error), disc_error_text(error));              \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)

inline std::string bytes_of(const char *path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline disc_load_options trusted(int threads = 0) {
  disc_load_options options{};
  options.struct_size = sizeof options;
  options.trust = 1;
  options.threads = threads;
  return options;
}

inline disc_program_t *load(const std::string &bytes, const disc_load_options &options) {
  disc_program_t *program = nullptr;
  CHECK_OK(disc_load_bytes(bytes.data(), bytes.size(), &options, &program));
  return program;
}

/// A tensor of f32, and its memory.
class Array {
public:
  explicit Array(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    size_t count = 1;
    for (int64_t size : sizes_)
      count *= static_cast<size_t>(size);
    elements.resize(count);
    for (size_t i = 0; i < count; ++i)
      elements[i] = static_cast<float>(i % 97) / 64.0f - 0.5f;
  }
  Array(const Array &) = delete;

  DLTensor tensor() {
    return {elements.data(), {static_cast<decltype(DLDevice::device_type)>(1), 0}, static_cast<int32_t>(sizes_.size()),
            {2, 32, 1}, sizes_.data(), nullptr, 0};
  }
  const std::vector<int64_t> &sizes() const { return sizes_; }

  std::vector<float> elements;

private:
  std::vector<int64_t> sizes_;
};

/// The sizes of a result, and its bytes.
inline std::vector<int64_t> sizes_of(const DLTensor &tensor) { return {tensor.shape, tensor.shape + tensor.ndim}; }

inline std::string contents_of(const DLTensor &tensor) {
  size_t bytes = tensor.dtype.bits / 8u;
  for (int64_t size : sizes_of(tensor))
    bytes *= static_cast<size_t>(size);
  return {static_cast<const char *>(tensor.data), bytes};
}

/// All results of a call, one after the other.
inline std::string called(const disc_program_t *program, Array &argument) {
  DLTensor tensor = argument.tensor();
  disc_results_t *results = nullptr;
  CHECK_OK(disc_call(program, &tensor, 1, &results));
  std::string all;
  for (size_t i = 0; i < disc_result_count(program); ++i)
    all += contents_of(*disc_result(results, i));
  disc_free_results(results);
  return all;
}

/// The same by a plan, into memory that is the caller's.
inline std::string run(const disc_program_t *program, Array &argument) {
  DLTensor tensor = argument.tensor();
  disc_plan_t *plan = nullptr;
  CHECK_OK(disc_plan(program, argument.sizes().data(), argument.sizes().size(), &plan));
  std::vector<std::string> memory(disc_result_count(program));
  std::vector<DLTensor> results(memory.size());
  for (size_t i = 0; i < memory.size(); ++i) {
    disc_array_info info{};
    info.struct_size = sizeof info;
    CHECK_OK(disc_describe_result(program, i, &info));
    memory[i].resize(static_cast<size_t>(disc_plan_result_bytes(plan, i)) + 1);
    results[i] = {memory[i].data(), tensor.device, static_cast<int32_t>(info.rank), info.type,
                  const_cast<int64_t *>(disc_plan_result_shape(plan, i)), nullptr, 0};
  }
  CHECK_OK(disc_run(plan, &tensor, 1, results.data(), results.size()));
  std::string all;
  for (const DLTensor &result : results)
    all += contents_of(result);
  disc_free_plan(plan);
  return all;
}
