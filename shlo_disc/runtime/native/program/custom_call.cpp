// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shlo_disc_custom_call.h"

#include "core/dtype.h"
#include "core/error.h"
#include "core/forks.h"
#include "kernels/library_call.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

namespace disc {

namespace {

struct Registration {
  void *function;
  Convention convention;
};

struct Registry {
  ForkMutex mutex;
  std::unordered_map<std::string, Registration> functions;
};

Registry &registry() {
  static auto *instance = new Registry;
  return *instance;
}

std::vector<ShloDiscBuffer> buffers_of(const CallTensor *tensors, const std::vector<CallTensorSpec> &specs,
                                       size_t count) {
  std::vector<ShloDiscBuffer> buffers;
  for (size_t i = 0; i < count; ++i)
    buffers.push_back({tensors[i].data, tensors[i].rank, tensors[i].dims, specs[i].dtype.c_str()});
  return buffers;
}

/// A function with the plain C signature.
class CustomFunction : public LibraryFunction {
public:
  CustomFunction(void *function, const CustomSpec &spec)
      : function_(reinterpret_cast<ShloDiscCustomCall>(function)) {
    for (const CallAttribute &attribute : spec.attributes)
      attributes_.push_back(attribute);
  }

  void run(const Call &call) const override {
    std::vector<ShloDiscBuffer> operands = buffers_of(call.operands, call.spec.operands, call.spec.operands.size());
    std::vector<ShloDiscBuffer> results = buffers_of(call.results, call.spec.results, call.spec.results.size() - 1);
    std::vector<ShloDiscAttribute> attributes;
    for (const CallAttribute &attribute : attributes_)
      attributes.push_back({attribute.name.c_str(), attribute.dtype.c_str(), attribute.count, attribute.data()});
    auto count = [](const auto &items) { return static_cast<int64_t>(items.size()); };
    ShloDiscCall frame{sizeof(ShloDiscCall), count(operands),   operands.data(),  count(results),
                       results.data(),       count(attributes), attributes.data()};
    if (const char *message = function_(&frame))
      report_failure("the custom call '" + call.spec.target + "' failed: " + message);
  }

private:
  ShloDiscCustomCall function_;
  std::vector<CallAttribute> attributes_;
};

/// Results that are declared to share an operand's buffer start with its contents.
class WithAliases : public LibraryFunction {
public:
  explicit WithAliases(std::shared_ptr<const LibraryFunction> function) : function_(std::move(function)) {}

  void run(const Call &call) const override {
    for (auto [result, operand] : call.spec.custom->aliases) {
      const CallTensor &from = call.operands[operand], &to = call.results[result];
      const DTypeInfo *dtype = dtype_named(call.spec.results[result].dtype);
      if (dtype && from.elements() == to.elements() && to.elements() > 0)
        std::memcpy(to.data, from.data, static_cast<size_t>(to.elements() * dtype->size));
    }
    function_->run(call);
  }

private:
  std::shared_ptr<const LibraryFunction> function_;
};

} // namespace

void register_custom_call(const std::string &target, void *function, Convention convention) {
  std::lock_guard lock(registry().mutex);
  registry().functions[target] = {function, convention};
}

std::shared_ptr<const LibraryFunction> bind_custom_call(const CallSpec &spec) {
  Registration found{};
  {
    std::lock_guard lock(registry().mutex);
    auto entry = registry().functions.find(spec.target);
    if (entry == registry().functions.end())
      bad_artifact("the program calls '" + spec.target + "', which is not registered in this process: call ",
                   {"shlo_disc.register_custom_call first", "disc_register_custom_call first"});
    found = entry->second;
  }
  std::shared_ptr<const LibraryFunction> function;
  if (found.convention == Convention::ffi)
    function = bind_ffi_handler(spec, found.function);
  else
    function = std::make_shared<CustomFunction>(found.function, *spec.custom);
  if (spec.custom->aliases.empty())
    return function;
  return std::make_shared<WithAliases>(std::move(function));
}

} // namespace disc
