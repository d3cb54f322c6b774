// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attributes.h"

#include "bytecode/vhlo.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace disc::interpreter {

namespace {

using bytecode::at;
using bytecode::Bytecode;
using bytecode::BytecodeEntry;
using bytecode::BytecodeOp;
using bytecode::Cursor;
namespace vhlo = bytecode::vhlo;

constexpr int64_t most_attribute_elements = 4096;

std::optional<DType> dtype_of(uint64_t code) {
  switch (code) {
  case vhlo::boolean_type: return DType::i1;
  case vhlo::float_bf16: return DType::bf16;
  case vhlo::float_f16: return DType::f16;
  case vhlo::float_f32: return DType::f32;
  case vhlo::float_f64: return DType::f64;
  case vhlo::integer_si8: return DType::i8;
  case vhlo::integer_si16: return DType::i16;
  case vhlo::integer_si32: return DType::i32;
  case vhlo::integer_si64: return DType::i64;
  case vhlo::integer_ui8: return DType::u8;
  case vhlo::integer_ui16: return DType::u16;
  case vhlo::integer_ui32: return DType::u32;
  case vhlo::integer_ui64: return DType::u64;
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
  if (code == vhlo::complex_type) {
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
  case vhlo::boolean:
  case vhlo::comparison_direction:
  case vhlo::comparison_type:
  case vhlo::fft_type:
  case vhlo::rng_algorithm:
  case vhlo::transpose:
    return {{static_cast<int64_t>(cursor.varint())}, {}};
  case vhlo::integer_attribute:
    return {{integer_value(bytecode, cursor)}, {}};
  case vhlo::tensor:
    return {tensor_elements(bytecode, cursor), {}};
  case vhlo::string:
    return {{}, at(bytecode.strings, cursor.varint())};
  case vhlo::type_attribute: // only whether there is one
    return {{vhlo_entry(bytecode, bytecode.types, cursor.varint()).varint() != vhlo::none_type}, {}};
  default:
    return {};
  }
}

} // namespace

std::string_view plain_name(std::string_view name) { return name.substr(0, name.rfind("_v")); }

Type type_of(const Bytecode &bytecode, uint64_t index) {
  Cursor cursor = vhlo_entry(bytecode, bytecode.types, index);
  if (cursor.varint() != vhlo::ranked_tensor)
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
  const std::vector<std::string_view> *known = vhlo::attribute_names(bytecode.ops[op.name].name);
  if (!known || !op.properties)
    return out;
  Cursor cursor(at(bytecode.properties, *op.properties));
  for (std::string_view name : *known)
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
  if (cursor.varint() != vhlo::array)
    throw Unsupported("a function says something else of its arguments");
  for (uint64_t left = cursor.count(); left > 0; --left) {
    Cursor entry = vhlo_entry(bytecode, bytecode.attributes, cursor.varint());
    if (entry.varint() != vhlo::dictionary_attribute)
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
    if (entry.is_binary && bytecode.dialects[entry.dialect] == "builtin" && text.varint() == vhlo::builtin_string)
      return std::string(at(bytecode.strings, text.varint()));
  }
  return {};
}

} // namespace disc::interpreter
