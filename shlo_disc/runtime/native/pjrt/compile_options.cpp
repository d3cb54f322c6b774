// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Protocol buffers: a message is a row of fields, each a number, a kind and a value. Unknown fields are passed over.
#include "compile_options.h"

#include "error.h"

#include <algorithm>

namespace disc::pjrt {

namespace {

constexpr const char *kMalformed = "the compile options are no CompileOptionsProto";

enum Kind : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number = 0;
  Kind kind = kVarint;
  uint64_t value = 0;     // of a varint
  std::string_view bytes; // of everything else
};

class Reader {
public:
  explicit Reader(std::string_view message) : rest_(message) {}

  bool next(Field &field) {
    if (rest_.empty())
      return false;
    uint64_t key = varint();
    field.number = key >> 3;
    field.kind = static_cast<Kind>(key & 7);
    if (field.kind == kVarint)
      field.value = varint();
    else if (field.kind == kBytes)
      field.bytes = take(varint());
    else if (field.kind == kFixed64 || field.kind == kFixed32)
      field.bytes = take(field.kind == kFixed64 ? 8 : 4);
    else
      fail_argument(kMalformed);
    return true;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80)
        return value;
    }
    fail_argument(kMalformed);
  }

  bool is_empty() const { return rest_.empty(); }

private:
  std::string_view take(uint64_t count) {
    if (count > rest_.size())
      fail_argument(kMalformed);
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
};

/// Integers that a field holds one by one or packed.
void append_integers(const Field &field, std::vector<int64_t> &out) {
  if (field.kind == kVarint)
    out.push_back(static_cast<int64_t>(field.value));
  Reader packed(field.bytes);
  while (field.kind == kBytes && !packed.is_empty())
    out.push_back(static_cast<int64_t>(packed.varint()));
}

/// ComputationDevice: the devices of one partition, one for each replica.
std::vector<int64_t> computation_devices(std::string_view message) {
  std::vector<int64_t> devices;
  Reader reader(message);
  for (Field field; reader.next(field);)
    if (field.number == 1)
      append_integers(field, devices);
  return devices;
}

/// DeviceAssignmentProto.
std::vector<int64_t> assigned_devices(std::string_view message) {
  std::vector<std::vector<int64_t>> partitions;
  Reader reader(message);
  for (Field field; reader.next(field);)
    if (field.number == 3 && field.kind == kBytes)
      partitions.push_back(computation_devices(field.bytes));
  std::vector<int64_t> devices;
  for (size_t replica = 0; !partitions.empty() && replica < partitions.front().size(); ++replica)
    for (const std::vector<int64_t> &partition : partitions) {
      if (partition.size() != partitions.front().size())
        fail_argument(kMalformed);
      devices.push_back(partition[replica]);
    }
  return devices;
}

void append_varint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_field(std::string &out, uint64_t number, uint64_t value) {
  append_varint(out, number << 3 | kVarint);
  append_varint(out, value);
}

void append_field(std::string &out, uint64_t number, const std::string &bytes) {
  append_varint(out, number << 3 | kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

/// An entry of a map: its key.
std::string key_of(std::string_view entry) {
  Reader reader(entry);
  for (Field field; reader.next(field);)
    if (field.number == 1 && field.kind == kBytes)
      return std::string(field.bytes);
  return {};
}

/// XLA's names of options that have no prefix.
constexpr std::string_view kPlainOptions[] = {
    "allow_spmd_sharding_propagation_to_output", "exec_time_optimization_effort", "memory_fitting_effort",
    "memory_fitting_level", "num_partitions", "num_replicas", "optimization_level", "use_auto_spmd_partitioning",
    "use_shardy_partitioner", "use_spmd_partitioning",
};

} // namespace

CompileOptions::CompileOptions(std::string_view message) {
  Reader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == 7 && field.kind == kBytes) // env_option_overrides
      overrides.push_back(key_of(field.bytes));
    if (field.number != 3 || field.kind != kBytes) // executable_build_options
      continue;
    Reader build(field.bytes);
    for (Field option; build.next(option);) {
      if (option.number == 4 && option.kind == kVarint)
        replicas = std::max<int64_t>(1, static_cast<int64_t>(option.value));
      else if (option.number == 5 && option.kind == kVarint)
        partitions = std::max<int64_t>(1, static_cast<int64_t>(option.value));
      else if (option.number == 9 && option.kind == kBytes)
        devices = assigned_devices(option.bytes);
    }
  }
  if (!devices.empty() && static_cast<int64_t>(devices.size()) != replicas * partitions)
    fail_argument("the device assignment has not as many devices as replicas times partitions");
}

void check_overrides(const CompileOptions &options) {
  for (const std::string &name : options.overrides)
    if (!name.starts_with("xla_") && std::ranges::find(kPlainOptions, name) == std::end(kPlainOptions))
      fail_argument("No such compile option: '" + name + "'");
}

std::string device_assignment_message(const CompileOptions &options, const std::vector<int64_t> &devices) {
  std::string message;
  append_field(message, 1, static_cast<uint64_t>(options.replicas));
  append_field(message, 2, static_cast<uint64_t>(options.partitions));
  for (int64_t partition = 0; partition < options.partitions; ++partition) {
    std::string packed;
    for (int64_t replica = 0; replica < options.replicas; ++replica) {
      auto position = static_cast<size_t>(replica * options.partitions + partition);
      append_varint(packed, static_cast<uint64_t>(devices[position]));
    }
    std::string computation;
    append_field(computation, 1, packed);
    append_field(message, 3, computation);
  }
  return message;
}

} // namespace disc::pjrt
