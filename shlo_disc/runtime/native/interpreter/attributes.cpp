// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The codes are those of StableHLO's VHLO dialect, which never change once they are released.
#include "attributes.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace disc::interpreter {

namespace {

using pjrt::at;
using pjrt::Bytecode;
using pjrt::BytecodeEntry;
using pjrt::BytecodeOp;
using pjrt::Cursor;

constexpr int64_t most_attribute_elements = 4096;

enum AttributeCode : uint64_t {
  array_code = 1,
  boolean_code = 2,
  comparison_direction_code = 3,
  comparison_type_code = 4,
  dictionary_code = 6,
  fft_type_code = 7,
  integer_code = 9,
  rng_algorithm_code = 12,
  string_code = 14,
  tensor_code = 15,
  transpose_code = 16,
  type_code = 17,
};

enum TypeCode : uint64_t { boolean_type = 0, complex_type = 1, si64_type = 14, ranked_tensor = 20, none_type = 33 };

constexpr uint64_t builtin_string = 2; // of the builtin dialect's attributes

/// The attributes of ops in the order in which they are written, which is that of their names. `v2` of an op may have more.
const std::unordered_map<std::string_view, std::vector<std::string_view>> &attribute_names() {
  static const std::unordered_map<std::string_view, std::vector<std::string_view>> table = {
      {"broadcast_in_dim_v1", {"broadcast_dimensions"}},
      {"call_v1", {"callee"}},
      {"cholesky_v1", {"lower"}},
      {"compare_v1", {"compare_type", "comparison_direction"}},
      {"composite_v1", {"composite_attributes", "decomposition", "name", "version"}},
      {"composite_v2", {"composite_attributes", "decomposition", "name", "version"}},
      {"concatenate_v1", {"dimension"}},
      {"constant_v1", {"value"}},
      {"convolution_v1",
       {"batch_group_count", "feature_group_count", "input_batch_dimension", "input_feature_dimension",
        "input_spatial_dimensions", "kernel_input_feature_dimension", "kernel_output_feature_dimension",
        "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension", "output_feature_dimension",
        "output_spatial_dimensions", "padding", "precision_config", "rhs_dilation", "window_reversal",
        "window_strides"}},
      {"dot_general_v1",
       {"lhs_batching_dimensions", "lhs_contracting_dimensions", "precision_config", "rhs_batching_dimensions",
        "rhs_contracting_dimensions"}},
      {"dot_general_v2",
       {"accumulation_type", "allow_imprecise_accumulation", "lhs_batching_dimensions", "lhs_component_count",
        "lhs_contracting_dimensions", "lhs_precision_type", "num_primitive_operations", "precision_config",
        "rhs_batching_dimensions", "rhs_component_count", "rhs_contracting_dimensions", "rhs_precision_type"}},
      {"dynamic_slice_v1", {"slice_sizes"}},
      {"fft_v1", {"fft_length", "fft_type"}},
      {"func_v1", {"arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"}},
      {"gather_v1",
       {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "slice_sizes",
        "start_index_map"}},
      {"gather_v2",
       {"collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "operand_batching_dims",
        "slice_sizes", "start_index_map", "start_indices_batching_dims"}},
      {"iota_v1", {"iota_dimension"}},
      {"map_v1", {"dimensions"}},
      {"pad_v1", {"edge_padding_high", "edge_padding_low", "interior_padding"}},
      {"reduce_precision_v1", {"exponent_bits", "mantissa_bits"}},
      {"reduce_v1", {"dimensions"}},
      {"reduce_window_v1", {"base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"}},
      {"reverse_v1", {"dimensions"}},
      {"rng_bit_generator_v1", {"rng_algorithm"}},
      {"scatter_v1",
       {"index_vector_dim", "indices_are_sorted", "inserted_window_dims", "scatter_dims_to_operand_dims",
        "unique_indices", "update_window_dims"}},
      {"scatter_v2",
       {"index_vector_dim", "indices_are_sorted", "input_batching_dims", "inserted_window_dims",
        "scatter_dims_to_operand_dims", "scatter_indices_batching_dims", "unique_indices", "update_window_dims"}},
      {"select_and_scatter_v1", {"padding", "window_dimensions", "window_strides"}},
      {"slice_v1", {"limit_indices", "start_indices", "strides"}},
      {"sort_v1", {"dimension", "is_stable"}},
      {"transpose_v1", {"permutation"}},
      {"triangular_solve_v1", {"left_side", "lower", "transpose_a", "unit_diagonal"}},
  };
  return table;
}

std::optional<DType> dtype_of(uint64_t code) {
  switch (code) {
  case boolean_type: return DType::i1;
  case 2: return DType::bf16;
  case 3: return DType::f16;
  case 4: return DType::f32;
  case 5: return DType::f64;
  case 11: return DType::i8;
  case 12: return DType::i16;
  case 13: return DType::i32;
  case 14: return DType::i64;
  case 16: return DType::u8;
  case 17: return DType::u16;
  case 18: return DType::u32;
  case 19: return DType::u64;
  default: return std::nullopt;
  }
}

Cursor vhlo_entry(const Bytecode &bytecode, const std::vector<BytecodeEntry> &table, uint64_t index) {
  const BytecodeEntry &entry = at(table, index);
  if (!entry.is_binary || bytecode.dialects[entry.dialect] != "vhlo")
    throw Unsupported("a type or an attribute is not of VHLO");
  return Cursor(entry.bytes);
}

DType element_type(const Bytecode &bytecode, uint64_t index) {
  Cursor cursor = vhlo_entry(bytecode, bytecode.types, index);
  uint64_t code = cursor.varint();
  std::optional<DType> found = dtype_of(code);
  if (code == complex_type) {
    DType part = element_type(bytecode, cursor.varint());
    if (part == DType::f32 || part == DType::f64)
      found = part == DType::f32 ? DType::c64 : DType::c128;
  }
  if (!found)
    throw Unsupported("elements of a type that is compiled only");
  return *found;
}

/// The elements of a tensor of integers or booleans.
std::vector<int64_t> tensor_elements(const Bytecode &bytecode, Cursor &cursor) {
  Type type = type_of(bytecode, cursor.varint());
  std::string_view bytes = cursor.bytes(cursor.varint());
  int64_t count = type.count();
  bool is_boolean = type.dtype == DType::i1;
  if ((type.dtype != DType::i64 && !is_boolean) || count > most_attribute_elements)
    throw Unsupported("an attribute has elements of another type, or too many");
  std::vector<int64_t> out(static_cast<size_t>(count));
  size_t width = is_boolean ? 1 : sizeof(int64_t);
  bool is_splat = bytes.size() == width && count != 1;
  size_t whole = is_boolean ? (out.size() + 7) / 8 : out.size() * width;
  // One byte of booleans is a splat if it is all ones, or zero.
  if (is_boolean && is_splat && bytes[0] != '\xff' && bytes[0] != 0)
    is_splat = false;
  if (!is_splat && bytes.size() != whole)
    throw Unsupported("an attribute has the wrong number of bytes");
  for (size_t i = 0; i < out.size(); ++i) {
    if (is_boolean)
      out[i] = is_splat ? bytes[0] & 1 : (static_cast<uint8_t>(bytes[i / 8]) >> (i % 8)) & 1;
    else
      std::memcpy(&out[i], bytes.data() + (is_splat ? 0 : i * width), width);
  }
  return out;
}

int64_t integer_value(const Bytecode &bytecode, Cursor &cursor) {
  DType dtype = element_type(bytecode, cursor.varint());
  return info(dtype).bits <= 8 ? static_cast<int8_t>(cursor.byte()) : cursor.signed_varint();
}

Attribute attribute_of(const Bytecode &bytecode, uint64_t index) {
  const BytecodeEntry &entry = at(bytecode.attributes, index);
  if (!entry.is_binary || bytecode.dialects[entry.dialect] != "vhlo")
    return {};
  Cursor cursor(entry.bytes);
  switch (cursor.varint()) {
  case boolean_code:
  case comparison_direction_code:
  case comparison_type_code:
  case fft_type_code:
  case rng_algorithm_code:
  case transpose_code:
    return {{static_cast<int64_t>(cursor.varint())}, {}};
  case integer_code:
    return {{integer_value(bytecode, cursor)}, {}};
  case tensor_code:
    return {tensor_elements(bytecode, cursor), {}};
  case string_code:
    return {{}, at(bytecode.strings, cursor.varint())};
  case type_code: // only whether there is one
    return {{vhlo_entry(bytecode, bytecode.types, cursor.varint()).varint() != none_type}, {}};
  default:
    return {};
  }
}

} // namespace

std::string_view plain_name(std::string_view name) { return name.substr(0, name.rfind("_v")); }

Type type_of(const Bytecode &bytecode, uint64_t index) {
  Cursor cursor = vhlo_entry(bytecode, bytecode.types, index);
  if (cursor.varint() != ranked_tensor)
    throw Unsupported("a value is no array of known sizes");
  Type type;
  int64_t count = 1;
  for (uint64_t left = cursor.count(); left > 0; --left) {
    type.dims.push_back(cursor.signed_varint());
    if (type.dims.back() < 0 || type.dims.back() > int64_t{1} << 40 ||
        __builtin_mul_overflow(count, std::max<int64_t>(type.dims.back(), 1), &count) || count > int64_t{1} << 40)
      throw Unsupported("a value is no array of known sizes");
  }
  type.dtype = element_type(bytecode, cursor.varint());
  return type;
}

std::map<std::string_view, Attribute> attributes_of(const Bytecode &bytecode, const BytecodeOp &op) {
  std::map<std::string_view, Attribute> out;
  auto known = attribute_names().find(bytecode.ops[op.name].name);
  if (known == attribute_names().end() || !op.properties)
    return out;
  Cursor cursor(at(bytecode.properties, *op.properties));
  for (std::string_view name : known->second)
    out.emplace(name, name == "value" ? Attribute{{static_cast<int64_t>(cursor.varint())}, {}}
                                      : attribute_of(bytecode, cursor.varint()));
  if (!cursor.empty())
    throw Unsupported("an op has more attributes than are known");
  return out;
}

std::string_view text_of(const std::map<std::string_view, Attribute> &attributes, std::string_view name) {
  auto found = attributes.find(name);
  if (found == attributes.end())
    throw Unsupported("an op has not an attribute that it should have");
  return found->second.text;
}

std::vector<std::vector<std::string_view>> names_of(const Bytecode &bytecode, uint64_t attribute) {
  std::vector<std::vector<std::string_view>> out;
  Cursor cursor = vhlo_entry(bytecode, bytecode.attributes, attribute);
  if (cursor.varint() != array_code)
    throw Unsupported("a function says something else of its arguments");
  for (uint64_t left = cursor.count(); left > 0; --left) {
    Cursor entry = vhlo_entry(bytecode, bytecode.attributes, cursor.varint());
    if (entry.varint() != dictionary_code)
      throw Unsupported("a function says something else of its arguments");
    std::vector<std::string_view> &names = out.emplace_back();
    for (uint64_t pairs = entry.count(); pairs > 0; --pairs) {
      names.push_back(attribute_of(bytecode, entry.varint()).text);
      entry.varint();
    }
  }
  return out;
}

std::string module_name(const Bytecode &bytecode, const BytecodeOp &module) {
  if (!module.properties)
    return {};
  for (Cursor cursor(at(bytecode.properties, *module.properties)); !cursor.empty();) {
    uint64_t index = cursor.varint();
    if (!(index & 1)) // an attribute that is not there
      continue;
    const BytecodeEntry &entry = at(bytecode.attributes, index >> 1);
    Cursor text(entry.bytes);
    if (entry.is_binary && bytecode.dialects[entry.dialect] == "builtin" && text.varint() == builtin_string)
      return std::string(at(bytecode.strings, text.varint()));
  }
  return {};
}

} // namespace disc::interpreter
