// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/instance.h"

#include "triton/errors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace disc::triton {

namespace {

struct FreeResults {
  void operator()(disc_results_t *results) const { disc_free_results(results); }
};

} // namespace

Instance::Instance(TRITONBACKEND_ModelInstance *handle, const Model &model) : handle_(handle), model_(model) {
  InstanceKind kind = kAutoKind;
  const char *name = nullptr;
  check(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  check(TRITONBACKEND_ModelInstanceName(handle, &name));
  if (kind == kGpuKind)
    throw Failure(kUnsupported, std::string("the instance '") + name +
                                    "' is to run on a GPU, and programs of the backend run on the processor: write "
                                    "instance_group [ { kind: KIND_CPU } ]");
}

void Instance::execute(std::span<TRITONBACKEND_Request *> handles) {
  Times times{now(), now(), now()};
  std::vector<Request> requests(handles.begin(), handles.end());
  std::vector<TRITONSERVER_Error *> failures(handles.size(), nullptr);
  std::vector<Group> groups;
  groups.reserve(handles.size());
  for (size_t i = 0; i < requests.size(); ++i)
    failures[i] = guarded([&] {
      requests[i].read(model_);
      join(requests[i], groups);
    });
  for (size_t i = 0; i < requests.size(); ++i)
    if (failures[i] != nullptr)
      requests[i].fail(handle_, failures[i], times);
  for (const Group &group : groups)
    run(group, times);
}

/// Requests without rows stay alone: among others, they would not get the error that they may be due.
void Instance::join(Request &request, std::vector<Group> &groups) const {
  auto found = groups.end();
  if (model_.has_batches() && request.rows() > 0)
    found = std::ranges::find_if(groups, [&](const Group &group) {
      return group[0]->rows() > 0 && group[0]->common_sizes() == request.common_sizes();
    });
  if (found != groups.end())
    found->push_back(&request);
  else
    groups.push_back(Group{&request});
}

void Instance::run(const Group &group, Times &times) noexcept {
  std::unique_ptr<disc_results_t, FreeResults> results;
  TRITONSERVER_Error *failure = guarded([&] { results.reset(call(group, times)); });
  copies_.clear();
  if (failure != nullptr)
    return run_apart(group, failure, times);
  int64_t row = 0;
  for (Request *request : group) {
    request->answer(handle_, model_, results.get(), row, times);
    row += request->rows();
  }
  log_failure(TRITONBACKEND_ModelInstanceReportBatchStatistics(handle_, static_cast<uint64_t>(row), times.start,
                                                               times.compute_start, times.compute_end, now()));
}

/// Whatever a call for several requests lacks, such as memory, one of them may not need: each gets its own answer.
void Instance::run_apart(const Group &group, TRITONSERVER_Error *failure, Times &times) noexcept {
  if (group.size() == 1)
    return group[0]->fail(handle_, failure, times);
  TRITONSERVER_ErrorDelete(failure);
  for (Request *request : group) {
    TRITONSERVER_Error *error = nullptr;
    Group one;
    error = guarded([&] { one.push_back(request); });
    if (error != nullptr)
      request->fail(handle_, error, times);
    else
      run(one, times);
  }
}

disc_results_t *Instance::call(const Group &group, Times &times) {
  const std::vector<Input> &first = group[0]->inputs();
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> arguments;
  int64_t rows = 0;
  for (const Request *request : group)
    rows += request->rows();
  for (size_t i = 0; i < first.size(); ++i) {
    shapes.push_back(first[i].shape);
    if (model_.has_batches())
      shapes.back()[0] = rows;
    size_t bytes = 0;
    for (const Request *request : group)
      bytes += request->inputs()[i].bytes;
    bool is_in_place = group.size() == 1 && first[i].pieces.size() == 1;
    char *data = is_in_place ? const_cast<char *>(first[i].pieces[0].data()) : gathered(group, i, bytes);
    disc_array_info info{};
    info.struct_size = sizeof info;
    check(disc_describe_argument(model_.program(), i, &info));
    arguments.push_back({data, {kDLCPU, 0}, static_cast<int32_t>(shapes.back().size()), info.type, nullptr, nullptr, 0});
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    arguments[i].shape = shapes[i].data();
  disc_results_t *results = nullptr;
  times.compute_start = now();
  disc_error_t *error = disc_call(model_.program(), arguments.data(), arguments.size(), &results);
  times.compute_end = now();
  model_.check_call(error);
  return results;
}

/// The pieces of an input of all requests, one behind the other; null for none.
char *Instance::gathered(const Group &group, size_t input, size_t bytes) {
  if (bytes == 0)
    return nullptr;
  char *copy = static_cast<char *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  if (copy == nullptr)
    throw std::bad_alloc();
  copies_.emplace_back(copy, std::free);
  char *end = copy;
  for (const Request *request : group)
    for (std::string_view piece : request->inputs()[input].pieces) {
      std::memcpy(end, piece.data(), piece.size());
      end += piece.size();
    }
  return copy;
}

} // namespace disc::triton
