// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs as Triton's model configurations describe them: names, data types, dims and batches. The backend completes and
// checks configurations with this, and `shlo_disc export --triton` writes them.
#pragma once

#include "artifact/json.h"
#include "triton/server_api.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace disc::triton {

/// An argument or a result as a client of the server sees it.
struct Tensor {
  Tensor(std::string path, std::string dtype, std::vector<std::string> texts);

  std::string name;
  std::string path;               // as errors of the C API name it
  std::string dtype;              // NumPy's name
  std::vector<int64_t> sizes;     // -1 where symbolic
  std::vector<std::string> texts; // of the sizes: "b", "2*s + 1", "768"
};

struct Signature {
  std::vector<Tensor> inputs, outputs;
};

/// The data types that both sides have.
struct TypeRow {
  std::string_view dtype;  // NumPy's name
  std::string_view config; // in configurations
  DataType type;
  int64_t size; // bytes of an element
};

/// Null where Triton has no such type.
const TypeRow *type_of(std::string_view dtype);

/// Names the inputs: each by the user's name of the argument, where it has one that no other argument has, else by its
/// path. Outputs have their paths as names. `names`: the user's names of the inputs, "" for none.
void name_tensors(Signature &signature, const std::vector<std::string> &names);

/// Throws Error(artifact) where Triton has no type for an element type of the signature.
void check_types(const Signature &signature);

/// Why the server must not join requests of the program along their first dimensions; "" where it may. It may where the
/// first dimension of every input and output is the same symbol, and no other size depends on that symbol.
std::string no_batch_reason(const Signature &signature);

/// A configuration's inputs, outputs, max_batch_size and, unless it is "", scheduler, such as "dynamic_batching"; as JSON.
std::string config_text(const Signature &signature, int64_t max_batch_size, std::string_view scheduler);

/// Tells whether a configuration states inputs or outputs.
bool states_tensors(const Json &config);

/// What is to change in a configuration with respect to the program; "" where it fits.
std::string misfit(const Signature &signature, int64_t max_batch_size, const Json &config);

/// An integer of a configuration, which JSON of protobuf also writes as a string; none where it is neither.
std::optional<int64_t> integer(const Json *value);

} // namespace disc::triton
