// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "op_attributes.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace disc::pjrt {

namespace {

constexpr std::string_view call_configuration = "mhlo.backend_config";

/// The ops with attributes that state sizes, and the names of all their attributes, in the order in which they are
/// written. All other ops have attributes that do not depend on sizes.
const std::unordered_map<std::string_view, std::vector<std::string_view>> &sized_ops() {
  static const std::unordered_map<std::string_view, std::vector<std::string_view>> table = {
      {"call_v1", {"callee"}},
      {"composite_v1", {"composite_attributes", "decomposition", "name", "version"}},
      {"composite_v2", {"composite_attributes", "decomposition", "name", "version"}},
      {"constant_v1", {"value"}},
      {"convolution_v1",
       {"batch_group_count", "feature_group_count", "input_batch_dimension", "input_feature_dimension",
        "input_spatial_dimensions", "kernel_input_feature_dimension", "kernel_output_feature_dimension",
        "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension", "output_feature_dimension",
        "output_spatial_dimensions", "padding", "precision_config", "rhs_dilation", "window_reversal",
        "window_strides"}},
      {"dynamic_slice_v1", {"slice_sizes"}},
      {"fft_v1", {"fft_length", "fft_type"}},
      {"func_v1", {"arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"}},
      {"gather_v1",
       {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "slice_sizes",
        "start_index_map"}},
      {"gather_v2",
       {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "operand_batching_dims",
        "slice_sizes", "start_index_map", "start_indices_batching_dims"}},
      {"pad_v1", {"edge_padding_high", "edge_padding_low", "interior_padding"}},
      {"reduce_window_v1",
       {"base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"}},
      {"select_and_scatter_v1", {"padding", "window_dimensions", "window_strides"}},
      {"slice_v1", {"limit_indices", "start_indices", "strides"}},
  };
  return table;
}

/// The attributes of those ops whose integers follow from sizes.
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
  auto sized = sized_ops().find(op_name);
  if (sized != sized_ops().end() && sized->second.size() != values.size())
    throw Unreadable("an op has more or fewer attributes than are known");
  out.tokens.number(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    read(sized == sized_ops().end() ? std::string_view() : sized->second[i], values[i], out);
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
