// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An instance of a model: executes the requests that the server hands over together.
#pragma once

#include "triton/request.h"

#include <memory>
#include <span>
#include <vector>

namespace disc::triton {

class Instance {
public:
  /// Throws Failure for one on a GPU.
  Instance(TRITONBACKEND_ModelInstance *handle, const Model &model);

  /// Answers and releases all requests. Throws std::bad_alloc before it has touched any.
  void execute(std::span<TRITONBACKEND_Request *> handles);

private:
  using Group = std::vector<Request *>;

  void join(Request &request, std::vector<Group> &groups) const;
  void run(const Group &group, Times &times) noexcept;
  void run_apart(const Group &group, TRITONSERVER_Error *failure, Times &times) noexcept;
  disc_results_t *call(const Group &group, Times &times);
  char *gathered(const Group &group, size_t input, size_t bytes);

  TRITONBACKEND_ModelInstance *handle_;
  const Model &model_;
  std::vector<std::unique_ptr<char, void (*)(void *)>> copies_; // of a call's inputs
};

} // namespace disc::triton
