// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.h"

#include "vhlo.h"

#include <cstring>

namespace disc::bytecode {

using namespace vhlo;

namespace {

constexpr size_t most_bytes = 16 << 20; // of one expansion
constexpr int most_depth = 32;
constexpr int64_t most_integers = 4096;

constexpr uint64_t builtin_integer_type = 0;
constexpr uint64_t from_builtin = 1000; // apart from the codes of VHLO

/// The bits of an element of each numeric type in a constant; 0 for what is none.
int storage_bits(uint64_t code) {
  static constexpr uint8_t bits[] = {1, 0,  16, 16, 32, 64, 8, 8, 0, 64, 8, 8, 16, 32, 64, 8, 8, 16, 32, 64, 0,
                                     0, 0,  0,  0,  0,  0,  8, 8, 8, 0,  8, 8, 0,  32, 8,  8, 8, 8,  8,  8};
  return code < sizeof bits ? bits[code] : 0;
}

int64_t product(const std::vector<int64_t> &sizes) {
  int64_t total = 1;
  for (int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(total, size, &total))
      throw Unreadable("a constant has no size");
  return total;
}

bool is_enum(uint64_t code) {
  switch (code) {
  case boolean:
  case comparison_direction:
  case comparison_type:
  case custom_call_version:
  case fft_type:
  case precision:
  case rng_algorithm:
  case rng_distribution:
  case transpose:
  case accuracy_mode:
    return true;
  default:
    return false;
  }
}

void signed_list(Cursor &cursor, Tokens &out) {
  uint64_t count = cursor.count();
  out.number(count);
  for (; count > 0; --count)
    out.number(static_cast<uint64_t>(cursor.signed_varint()));
}

/// Appends a part whose numbers are sizes, too.
void append(Expansion &out, const Expansion &part) {
  out.tokens.append(part.tokens);
  out.numbers.insert(out.numbers.end(), part.numbers.begin(), part.numbers.end());
  if (out.tokens.size() > most_bytes || out.numbers.size() > most_bytes)
    throw Unreadable("a type or an attribute is too large");
}

/// Counts how deep types and attributes lie in each other: they may refer to themselves.
class Deeper {
public:
  explicit Deeper(int &depth) : depth_(depth) {
    if (++depth_ > most_depth) {
      --depth_;
      throw Unreadable("types or attributes lie too deep in each other");
    }
  }
  ~Deeper() { --depth_; }

private:
  int &depth_;
};

} // namespace

void Tokens::number(uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void Tokens::text(std::string_view text) {
  number(text.size());
  bytes_.append(text);
}

Elements::Elements(const Bytecode &bytecode)
    : bytecode_(bytecode), types_(bytecode.types.size()), attributes_(bytecode.attributes.size()) {}

const Expansion &Elements::type(uint64_t index) {
  at(bytecode_.types, index);
  if (!types_[index])
    types_[index] = read_type(index);
  return *types_[index];
}

const Expansion &Elements::attribute(uint64_t index) {
  at(bytecode_.attributes, index);
  if (!attributes_[index])
    attributes_[index] = read_attribute(index);
  return *attributes_[index];
}

void Elements::types(Cursor &cursor, Expansion &out) {
  uint64_t count = cursor.count();
  out.tokens.number(count);
  for (; count > 0; --count)
    append(out, type(cursor.varint()));
}

void Elements::attributes(Cursor &cursor, Expansion &out) {
  uint64_t count = cursor.count();
  out.tokens.number(count);
  for (; count > 0; --count)
    append(out, attribute(cursor.varint()));
}

Expansion Elements::read_type(uint64_t index) {
  Deeper deeper(depth_);
  const BytecodeEntry &entry = at(bytecode_.types, index);
  if (!entry.is_binary || bytecode_.dialects[entry.dialect] != "vhlo")
    throw Unreadable("a type is not of VHLO");
  Cursor cursor(entry.bytes);
  Expansion out;
  uint64_t code = cursor.varint();
  out.tokens.number(code);
  switch (code) {
  case ranked_tensor_with_encoding:
    append(out, attribute(cursor.varint()));
    [[fallthrough]];
  case ranked_tensor: {
    uint64_t rank = cursor.count();
    out.tokens.number(rank);
    for (; rank > 0; --rank)
      out.numbers.push_back(cursor.signed_varint());
    append(out, type(cursor.varint()));
    break;
  }
  case complex_type:
  case unranked_tensor:
    append(out, type(cursor.varint()));
    break;
  case function_type:
    types(cursor, out);
    [[fallthrough]];
  case tuple_type:
  case future_type:
    types(cursor, out);
    break;
  case quantized:
  case quantized_per_axis:
    out.tokens.number(cursor.varint());
    append(out, type(cursor.varint()));
    append(out, type(cursor.varint()));
    while (!cursor.empty()) // numbers only
      out.tokens.number(cursor.byte());
    break;
  case buffer_type:
    throw Unreadable("a type is not known");
  default:
    if (code > future_type)
      throw Unreadable("a type is not known");
  }
  if (!cursor.empty())
    throw Unreadable("a type has more parts than are known");
  return out;
}

Expansion Elements::read_attribute(uint64_t index) {
  Deeper deeper(depth_);
  if (is_builtin(bytecode_.attributes[index]))
    return read_builtin_attribute(index);
  Cursor cursor(vhlo_attribute(index).bytes);
  Expansion out;
  uint64_t code = cursor.varint();
  out.tokens.number(code);
  if (is_enum(code)) {
    out.tokens.number(cursor.varint());
  } else if (code == array) {
    attributes(cursor, out);
  } else if (code == dictionary_attribute) {
    uint64_t count = cursor.count();
    out.tokens.number(count);
    for (count *= 2; count > 0; --count)
      append(out, attribute(cursor.varint()));
  } else if (code == string) {
    out.tokens.text(at(bytecode_.strings, cursor.varint()));
  } else if (code == type_attribute) {
    append(out, type(cursor.varint()));
  } else if (code == type_extensions) {
    signed_list(cursor, out.tokens);
  } else if (code == output_operand_alias) {
    signed_list(cursor, out.tokens);
    out.tokens.number(static_cast<uint64_t>(cursor.signed_varint()));
    signed_list(cursor, out.tokens);
  } else if (code == accuracy) {
    for (int i = 0; i < 3; ++i) // two bounds as bits, and units in the last place
      out.tokens.number(static_cast<uint64_t>(cursor.signed_varint()));
    append(out, attribute(cursor.varint()));
  } else if (code == integer_attribute || code == float_attribute) {
    integer(cursor, out);
  } else if (code == tensor) {
    append(out, type(cursor.varint()));
    out.tokens.text(cursor.bytes(cursor.varint()));
  } else {
    throw Unreadable("an attribute is not known");
  }
  if (!cursor.empty())
    throw Unreadable("an attribute has more parts than are known");
  return out;
}

Expansion Elements::read_builtin_attribute(uint64_t index) {
  Cursor cursor(at(bytecode_.attributes, index).bytes);
  Expansion out;
  uint64_t code = cursor.varint();
  out.tokens.number(from_builtin + code);
  if (code == builtin_string) {
    out.tokens.text(at(bytecode_.strings, cursor.varint()));
  } else if (code == builtin_array) { // the shardings of a program for several devices
    attributes(cursor, out);
  } else if (code == builtin_integer) {
    const BytecodeEntry &type = at(bytecode_.types, cursor.varint());
    Cursor type_cursor(type.bytes);
    if (!is_builtin(type) || type_cursor.varint() != builtin_integer_type)
      throw Unreadable("a number's type is not known");
    uint64_t width = type_cursor.varint(); // and the signedness, in the last two bits
    out.tokens.number(width);
    if (width >> 2 > 64)
      throw Unreadable("a number is too wide");
    out.tokens.number(width >> 2 <= 8 ? cursor.byte() : static_cast<uint64_t>(cursor.signed_varint()));
  } else if (code != builtin_unit) {
    throw Unreadable("an attribute of the module is not known");
  }
  if (!cursor.empty())
    throw Unreadable("an attribute has more parts than are known");
  return out;
}

/// A number and its type; a float is the integer of its bits.
void Elements::integer(Cursor &cursor, Expansion &out) {
  uint64_t type_index = cursor.varint();
  append(out, type(type_index));
  int bits = bits_of(type_index);
  if (bits == 0)
    throw Unreadable("a number has no width");
  out.tokens.number(bits <= 8 ? cursor.byte() : static_cast<uint64_t>(cursor.signed_varint()));
}

int Elements::bits_of(uint64_t type) const {
  Cursor cursor(at(bytecode_.types, type).bytes);
  uint64_t code = cursor.varint();
  return code == complex_type ? 2 * storage_bits(Cursor(at(bytecode_.types, cursor.varint()).bytes).varint())
                              : storage_bits(code);
}

uint64_t Elements::element_type(uint64_t tensor_type) const {
  Cursor cursor(at(bytecode_.types, tensor_type).bytes);
  if (cursor.varint() != ranked_tensor)
    throw Unreadable("elements are not of a plain tensor");
  for (uint64_t left = cursor.count(); left > 0; --left)
    cursor.signed_varint();
  return cursor.varint();
}

const BytecodeEntry &Elements::vhlo_attribute(uint64_t index) const {
  const BytecodeEntry &entry = at(bytecode_.attributes, index);
  if (!is_vhlo(entry))
    throw Unreadable("an attribute is not of VHLO");
  return entry;
}

bool Elements::is_vhlo(const BytecodeEntry &entry) const {
  return entry.is_binary && bytecode_.dialects[entry.dialect] == "vhlo";
}

bool Elements::is_builtin(const BytecodeEntry &entry) const {
  return entry.is_binary && bytecode_.dialects[entry.dialect] == "builtin";
}

std::string_view Elements::string_attribute(uint64_t index) const {
  const BytecodeEntry &entry = at(bytecode_.attributes, index);
  Cursor cursor(entry.bytes);
  if (!is_builtin(entry) || cursor.varint() != builtin_string)
    throw Unreadable("the name of an attribute is not a string");
  return at(bytecode_.strings, cursor.varint());
}

std::vector<std::pair<std::string_view, uint64_t>> Elements::dictionary(uint64_t index) const {
  const BytecodeEntry &entry = at(bytecode_.attributes, index);
  Cursor cursor(entry.bytes);
  if (!is_builtin(entry) || cursor.varint() != builtin_dictionary)
    throw Unreadable("the attributes of an op are not a dictionary");
  std::vector<std::pair<std::string_view, uint64_t>> out;
  for (uint64_t left = cursor.count(); left > 0; --left) {
    std::string_view name = string_attribute(cursor.varint());
    out.emplace_back(name, cursor.varint());
  }
  return out;
}

ConstantData Elements::constant(uint64_t attribute) {
  Cursor cursor(vhlo_attribute(attribute).bytes);
  if (cursor.varint() != tensor)
    throw Unreadable("a constant is not a tensor");
  uint64_t type_index = cursor.varint();
  ConstantData out{type(type_index), cursor.bytes(cursor.varint())};
  out.element_bits = bits_of(element_type(type_index));
  int64_t count = product(out.type.numbers);
  uint64_t element_bytes = static_cast<uint64_t>(out.element_bits + 7) / 8;
  if (element_bytes == 0)
    throw Unreadable("a constant's type is not known");
  // Of booleans one byte is a splat only if it is all ones: 0 might be bits, which are all alike then.
  bool is_boolean = out.element_bits == 1;
  uint64_t whole = is_boolean ? (static_cast<uint64_t>(count) + 7) / 8 : static_cast<uint64_t>(count) * element_bytes;
  bool is_one_value = !is_boolean || count == 1 || out.bytes.empty() || out.bytes[0] == '\xff' || out.bytes[0] == 0;
  out.is_splat = out.bytes.size() == element_bytes && is_one_value;
  if (!out.is_splat && out.bytes.size() != whole)
    throw Unreadable("a constant has the wrong number of bytes");
  return out;
}

bool Elements::is_si64(uint64_t type) const {
  return Cursor(at(bytecode_.types, type).bytes).varint() == integer_si64;
}

std::optional<std::vector<int64_t>> Elements::integers(uint64_t attribute) const {
  Cursor cursor(vhlo_attribute(attribute).bytes);
  uint64_t kind = cursor.varint();
  if (kind != tensor && kind != integer_attribute)
    return std::nullopt;
  uint64_t type_index = cursor.varint();
  if (kind == integer_attribute)
    return is_si64(type_index) ? std::optional(std::vector{cursor.signed_varint()}) : std::nullopt;
  std::string_view bytes = cursor.bytes(cursor.varint());
  if (!is_si64(element_type(type_index)))
    return std::nullopt;
  Cursor type_cursor(bytecode_.types[type_index].bytes);
  type_cursor.varint();
  std::vector<int64_t> sizes(type_cursor.count());
  for (int64_t &size : sizes)
    size = type_cursor.signed_varint();
  int64_t count = product(sizes);
  bool is_splat = bytes.size() == sizeof(int64_t);
  if (count > most_integers || (!is_splat && bytes.size() != static_cast<size_t>(count) * sizeof(int64_t)))
    return std::nullopt;
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i)
    std::memcpy(&out[i], bytes.data() + (is_splat ? 0 : i * sizeof(int64_t)), sizeof(int64_t));
  return out;
}

std::optional<size_t> Elements::rank(uint64_t type) const {
  Cursor cursor(at(bytecode_.types, type).bytes);
  return cursor.varint() == ranked_tensor ? std::optional<size_t>(cursor.count()) : std::nullopt;
}

bool Elements::is_dictionary(uint64_t index) const {
  const BytecodeEntry &entry = at(bytecode_.attributes, index);
  return is_vhlo(entry) && Cursor(entry.bytes).varint() == dictionary_attribute;
}

bool Elements::is_text(uint64_t index, std::string_view text) const {
  const BytecodeEntry &entry = at(bytecode_.attributes, index);
  return is_vhlo(entry) && Cursor(entry.bytes).varint() == string && text_of(index) == text;
}

Expansion Elements::named_integers(uint64_t index, std::string_view only) {
  Cursor cursor(vhlo_attribute(index).bytes);
  if (cursor.varint() != dictionary_attribute)
    throw Unreadable("what has names is not a dictionary");
  Expansion out;
  uint64_t count = cursor.count();
  out.tokens.number(count);
  for (; count > 0; --count) {
    uint64_t name = cursor.varint();
    append(out, attribute(name));
    uint64_t value = cursor.varint();
    Cursor read(vhlo_attribute(value).bytes);
    bool is_integer = read.varint() == integer_attribute;
    uint64_t type_index = is_integer ? read.varint() : 0;
    is_integer = is_integer && bits_of(type_index) > 8 && (only.empty() || text_of(name) == only);
    out.tokens.number(is_integer);
    if (is_integer) {
      append(out, type(type_index));
      out.numbers.push_back(read.signed_varint());
      continue;
    }
    const Expansion &fixed = attribute(value);
    out.tokens.append(fixed.tokens);
    for (int64_t size : fixed.numbers)
      out.tokens.number(static_cast<uint64_t>(size));
  }
  if (!cursor.empty())
    throw Unreadable("an attribute has more parts than are known");
  return out;
}

std::string_view Elements::text_of(uint64_t index) const {
  Cursor cursor(vhlo_attribute(index).bytes);
  if (cursor.varint() != string)
    throw Unreadable("a name is not a string");
  return at(bytecode_.strings, cursor.varint());
}

} // namespace disc::bytecode
