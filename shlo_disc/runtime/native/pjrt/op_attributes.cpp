// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "op_attributes.h"

#include "bytecode/vhlo.h"

#include <algorithm>
#include <iterator>

namespace disc::pjrt {

namespace {

constexpr std::string_view call_configuration = "mhlo.backend_config";

/// The attributes whose integers follow from sizes.
bool is_sized(std::string_view name) {
  static constexpr std::string_view names[] = {
      "base_dilations",    "batch_group_count", "edge_padding_high", "edge_padding_low", "feature_group_count",
      "fft_length",        "interior_padding",  "lhs_dilation",      "limit_indices",    "padding",
      "rhs_dilation",      "slice_sizes",       "start_indices",     "strides",          "window_dilations",
      "window_dimensions", "window_strides",
  };
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// The names of functions, which are no part of the skeleton: a function is read where it is called.
bool names_function(std::string_view name) { return name == "callee" || name == "decomposition" || name == "sym_name"; }

} // namespace

const OpAttributes &OpAttributeReader::inherent(uint64_t op_name, uint64_t properties) {
  auto [known, is_new] = inherent_.try_emplace({op_name, properties});
  if (is_new)
    read(bytecode_.ops[op_name].name, at(bytecode_.properties, properties), known->second);
  return known->second;
}

OpAttributes OpAttributeReader::discardable(uint64_t op_name, std::optional<uint64_t> properties,
                                            uint64_t dictionary) {
  auto named = elements_.dictionary(dictionary);
  OpAttributes out;
  out.tokens.number(named.size());
  for (auto [name, value] : named) {
    bool has_count = name == call_configuration && elements_.is_dictionary(value) && is_top_k(op_name, properties);
    out.tokens.text(name);
    read(has_count ? call_configuration : std::string_view(), value, out);
  }
  return out;
}

void OpAttributeReader::read(std::string_view op_name, std::string_view bytes, OpAttributes &out) {
  std::vector<uint64_t> values;
  for (Cursor cursor(bytes); !cursor.empty();)
    values.push_back(cursor.varint());
  const std::vector<std::string_view> *names = vhlo::attribute_names(op_name);
  if (names && names->size() != values.size())
    throw Unreadable("an op has more or fewer attributes than are known");
  out.tokens.number(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    read(names ? (*names)[i] : std::string_view(), values[i], out);
}

void OpAttributeReader::read(std::string_view name, uint64_t value, OpAttributes &out) {
  if (names_function(name)) {
    out.function = elements_.text_of(value);
    return;
  }
  if (name == "function_type") // the types of its arguments and of what it returns
    return;
  if (name == "sym_visibility")
    out.is_private = elements_.text_of(value) == "private";
  std::optional<std::vector<int64_t>> integers = is_sized(name) ? elements_.integers(value) : std::nullopt;
  std::optional<Expansion> named;
  if (name == "composite_attributes" || name == call_configuration)
    named = elements_.named_integers(value, name == call_configuration ? "top_k" : std::string_view());
  out.tokens.number(integers ? 1 : named ? 2 : 0);
  if (!integers && !named) {
    const Expansion &whole = elements_.attribute(value);
    out.tokens.append(whole.tokens);
    for (int64_t size : whole.numbers)
      out.tokens.number(static_cast<uint64_t>(size));
    return;
  }
  if (named)
    out.tokens.append(named->tokens);
  const std::vector<int64_t> &numbers = named ? named->numbers : *integers;
  out.tokens.number(numbers.size());
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    out.numbers.push_back(numbers[i]);
    out.places.emplace_back(name, i);
  }
}

/// Whether an op is the call that `jax.lax.approx_max_k` makes.
bool OpAttributeReader::is_top_k(uint64_t op_name, std::optional<uint64_t> properties) const {
  if (bytecode_.ops[op_name].name != "custom_call_v1" || !properties)
    return false;
  for (Cursor cursor(at(bytecode_.properties, *properties)); !cursor.empty();)
    if (elements_.is_text(cursor.varint(), "ApproxTopK"))
      return true;
  return false;
}

} // namespace disc::pjrt
