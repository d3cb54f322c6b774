// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A request of one execution: its inputs, checked, and its response.
#pragma once

#include "triton/model.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace disc::triton {

/// An input: its sizes, and its elements in pieces.
struct Input {
  std::vector<int64_t> shape;
  std::vector<std::string_view> pieces;
  size_t bytes = 0;
};

/// Nanoseconds of the steady clock, as the server wants them.
uint64_t now();

/// When an execution began, and when the call for a request began and ended.
struct Times {
  uint64_t start = 0, compute_start = 0, compute_end = 0;
};

class Request {
public:
  explicit Request(TRITONBACKEND_Request *handle) : handle_(handle) {}

  /// Reads the inputs, and checks types, ranks, fixed sizes and numbers of bytes. Throws Failure.
  void read(const Model &model);

  const std::vector<Input> &inputs() const { return inputs_; }
  /// The rows that it has in a batch; 1 where there are no batches.
  int64_t rows() const { return rows_; }
  /// The sizes that requests of one call have in common: all but those of the batch.
  const std::vector<int64_t> &common_sizes() const { return common_sizes_; }

  /// Sends the outputs: of each result the rows from `row` on, or all of it where there are no batches. Then releases
  /// the request. A failure is sent in their place.
  void answer(TRITONBACKEND_ModelInstance *instance, const Model &model, const disc_results_t *results, int64_t row,
              const Times &times) noexcept;

  /// Sends an error, and releases the request.
  void fail(TRITONBACKEND_ModelInstance *instance, TRITONSERVER_Error *error, const Times &times) noexcept;

private:
  Input input(const Tensor &tensor) const;
  void write(TRITONBACKEND_Response *response, const Model &model, const disc_results_t *results, int64_t row) const;
  void end(TRITONBACKEND_ModelInstance *instance, bool success, const Times &times) noexcept;

  TRITONBACKEND_Request *handle_;
  std::vector<Input> inputs_;
  std::vector<int64_t> common_sizes_;
  int64_t rows_ = 1;
};

} // namespace disc::triton
