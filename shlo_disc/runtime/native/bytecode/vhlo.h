// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The codes of StableHLO's VHLO dialect in bytecode, which never change once they are released.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace disc::bytecode::vhlo {

/// Of the builtin dialect are the dictionaries of ops, the names in them, and the module's own attributes.
enum BuiltinAttribute : uint64_t {
  builtin_array = 0,
  builtin_dictionary = 1,
  builtin_string = 2,
  builtin_unit = 7,
  builtin_integer = 8,
};

enum Attribute : uint64_t {
  array = 1,
  boolean = 2,
  comparison_direction = 3,
  comparison_type = 4,
  custom_call_version = 5,
  dictionary_attribute = 6,
  fft_type = 7,
  float_attribute = 8,
  integer_attribute = 9,
  output_operand_alias = 10,
  precision = 11,
  rng_algorithm = 12,
  rng_distribution = 13,
  string = 14,
  tensor = 15,
  transpose = 16,
  type_attribute = 17,
  type_extensions = 18,
  accuracy_mode = 19,
  accuracy = 20,
};

enum Type : uint64_t {
  boolean_type = 0,
  complex_type = 1,
  float_bf16 = 2,
  float_f16 = 3,
  float_f32 = 4,
  float_f64 = 5,
  function_type = 8,
  index_type = 9,
  integer_si8 = 11,
  integer_si16 = 12,
  integer_si32 = 13,
  integer_si64 = 14,
  integer_ui8 = 16,
  integer_ui16 = 17,
  integer_ui32 = 18,
  integer_ui64 = 19,
  ranked_tensor = 20,
  ranked_tensor_with_encoding = 21,
  tuple_type = 23,
  quantized = 24,
  unranked_tensor = 25,
  quantized_per_axis = 30,
  none_type = 33,
  buffer_type = 41,
  future_type = 42,
};

/// The names of all attributes that an op has by its definition, in the order in which they are written, which is that of
/// their names. Null for ops of which nobody here reads them.
const std::vector<std::string_view> *attribute_names(std::string_view op);

} // namespace disc::bytecode::vhlo
