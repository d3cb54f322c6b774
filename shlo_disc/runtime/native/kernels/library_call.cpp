// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "library_call.h"

#include "core/dtype.h"
#include "blas.h"
#include "core/error.h"

#include <algorithm>
#include <array>
#include <optional>
#include <cstdlib>
#include <cstring>
#include <new>

namespace disc {

namespace {

constexpr double kWorkToShare = 30000; // operations that pay for handing an entry to another thread

class BuiltinCall : public LibraryFunction {
public:
  explicit BuiltinCall(BuiltinFunction function) : function_(function) {}
  void run(const Call &call) const override { function_(call); }

private:
  BuiltinFunction function_;
};

struct Entries {
  int64_t count;
  int64_t slots;
  char *scratch;
  int64_t scratch_bytes;
  Call::EntryBody body;
  void *context;

  void run_slot(int64_t slot) const {
    for (int64_t entry = slot; entry < count; entry += slots)
      body(context, entry, scratch + slot * scratch_bytes);
  }
};

/// Why a run has failed.
struct Failure {
  ErrorKind kind;
  std::string message;
};

thread_local std::optional<Failure> failure;

} // namespace

int64_t place_of(const CallSpec &spec, int64_t site) {
  uint32_t hash = 2166136261; // FNV-1a (Fowler, Noll, Vo), the same in all processes
  auto add = [&](std::string_view text) {
    for (char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  };
  add(spec.target);
  add(std::to_string(spec.attribute("reduction")));
  add(spec.results[0].dtype);
  return site | static_cast<int64_t>(hash >> 1) << 32;
}

void report_failure(std::string message) {
  if (!failure)
    failure = Failure{ErrorKind::custom_call, std::move(message)};
}

void report_no_memory() noexcept {
  if (!failure)
    failure = Failure{ErrorKind::allocation, {}};
}

bool has_failed() { return failure.has_value(); }

void throw_failure() {
  std::optional<Failure> found = std::exchange(failure, std::nullopt);
  if (found && found->kind == ErrorKind::allocation)
    throw std::bad_alloc();
  if (found)
    throw Error(found->kind, found->message);
}

void store_values(CallAttribute &attribute, const std::vector<std::string> &values) {
  if (attribute.dtype == "string") {
    std::string text = values.empty() ? "" : values.front();
    attribute.count = static_cast<int64_t>(text.size());
    attribute.storage.resize(text.size() / sizeof(uint64_t) + 1);
    std::memcpy(attribute.storage.data(), text.data(), text.size());
    return;
  }
  const DTypeInfo *dtype = dtype_named(attribute.dtype);
  if (!dtype || dtype->size > 8)
    bad_artifact("header: the attribute '" + attribute.name + "' has an unknown type");
  attribute.count = static_cast<int64_t>(values.size());
  auto size = static_cast<size_t>(dtype->size);
  attribute.storage.resize((values.size() * size + 7) / 8 + 1);
  char *target = reinterpret_cast<char *>(attribute.storage.data());
  for (const std::string &text : values) {
    if (dtype->dtype == DType::f32) {
      float value = std::strtof(text.c_str(), nullptr);
      std::memcpy(target, &value, size);
    } else if (dtype->dtype == DType::f64) {
      double value = std::strtod(text.c_str(), nullptr);
      std::memcpy(target, &value, size);
    } else { // little-endian: the low bytes come first
      uint64_t value = text.starts_with('-') ? static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 10))
                                             : std::strtoull(text.c_str(), nullptr, 10);
      std::memcpy(target, &value, size);
    }
    target += size;
  }
}

int64_t CallSpec::attribute(std::string_view name, int64_t otherwise) const {
  for (const auto &[key, value] : attributes)
    if (key == name)
      return value;
  return otherwise;
}

int64_t CallTensor::elements() const {
  int64_t count = 1;
  for (int64_t i = 0; i < rank; ++i)
    count *= dims[i];
  return count;
}

int64_t Call::batch(const CallTensor &tensor, int64_t inner) {
  int64_t count = 1;
  for (int64_t i = 0; i < tensor.rank - inner; ++i)
    count *= tensor.dims[i];
  return count;
}

int64_t Call::scratch_bytes(int64_t entries) const {
  return entries == 0 ? 0 : workspace().size(0) / std::min(entries, kMostSlots);
}

void Call::for_each_entry(int64_t entries, double work, EntryBody body, void *context) const {
  if (entries <= 0)
    return;
  int64_t slots = std::min(entries, kMostSlots);
  Entries all{entries, slots, workspace().as<char>(), scratch_bytes(entries), body, context};
  double slot_work = work * static_cast<double>(entries) / static_cast<double>(slots);
  auto grain = static_cast<int64_t>(std::clamp(kWorkToShare / std::max(slot_work, 1.0), 1.0, 64.0));
  // One large entry may use the threads of BLAS itself.
  std::optional<Blas::SingleThreaded> guard;
  if (slots > 1)
    guard.emplace();
  auto run = [](void *opaque, int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      static_cast<const Entries *>(opaque)->run_slot(slot);
  };
  pool.run(run, &all, slots, grain);
}

void BoundCall::run(ThreadPool &pool, const int64_t *words, int64_t site, Communicator *communicator) const {
  constexpr size_t inline_tensors = 16;
  std::array<CallTensor, inline_tensors> few;
  std::vector<CallTensor> many;
  size_t count = spec.operands.size() + spec.results.size();
  if (count > inline_tensors)
    many.resize(count);
  CallTensor *tensors = count > inline_tensors ? many.data() : few.data();
  for (size_t i = 0; i < count; ++i) {
    bool is_operand = i < spec.operands.size();
    int64_t rank = (is_operand ? spec.operands[i] : spec.results[i - spec.operands.size()]).rank;
    tensors[i] = {reinterpret_cast<void *>(words[0]), rank, words + 1};
    words += 1 + rank;
  }
  function->run({spec, pool, tensors, tensors + spec.operands.size(), site, communicator});
}

std::shared_ptr<const LibraryFunction> bind_library_function(const CallSpec &spec) {
  if (spec.custom)
    return bind_custom_call(spec);
  const Builtin *builtin = fft_builtin(spec.target);
  if (!builtin)
    builtin = collective_builtin(spec.target);
  if (!builtin)
    builtin = ragged_dot_builtin(spec.target);
  if (!builtin)
    builtin = dequantized_dot_builtin(spec.target);
  if (!builtin)
    builtin = lapack_builtin(spec.target);
  if (!builtin)
    bad_artifact("the program calls the library function '" + spec.target + "', which this release does not have");
  size_t operands = spec.operands.size(), least = builtin->operands;
  if (operands < least || operands > least + builtin->more_operands || spec.results.size() != builtin->results + 1)
    bad_artifact("header: the call of '" + spec.target + "' has a wrong number of operands or results");
  return std::make_shared<BuiltinCall>(builtin->function);
}

} // namespace disc
