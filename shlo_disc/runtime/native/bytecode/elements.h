// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and attributes of VHLO, each as tokens that are the same at every size and the numbers that are not.
#pragma once

#include "bytecode.h"

#include <optional>

namespace disc::bytecode {

/// Text that two things have in common only if they are equal: every part says how long it is.
class Tokens {
public:
  void number(uint64_t value);
  void text(std::string_view text);
  void append(const Tokens &other) { bytes_.append(other.bytes_); }
  void clear() { bytes_.clear(); }
  size_t size() const { return bytes_.size(); }
  const std::string &bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// A type or an attribute. `numbers` are the sizes in types.
struct Expansion {
  Tokens tokens;
  std::vector<int64_t> numbers;
};

/// The elements of a constant: `bytes` holds one element if `is_splat`, else all of them, booleans as bits.
struct ConstantData {
  Expansion type;
  std::string_view bytes;
  int element_bits = 0; // 1 for booleans, that of the storage of others
  bool is_splat = false;
};

/// The types and attributes of a program, each read once.
class Elements {
public:
  explicit Elements(const Bytecode &bytecode);
  const Expansion &type(uint64_t index);
  const Expansion &attribute(uint64_t index);
  /// The names and values of an op's attributes.
  std::vector<std::pair<std::string_view, uint64_t>> dictionary(uint64_t index) const;
  ConstantData constant(uint64_t attribute);
  /// The elements of a tensor of 64-bit integers, or one such integer; nothing for any other attribute.
  std::optional<std::vector<int64_t>> integers(uint64_t attribute) const;
  /// Whether an attribute is a dictionary of VHLO's.
  bool is_dictionary(uint64_t attribute) const;
  /// Whether an attribute is this string.
  bool is_text(uint64_t attribute, std::string_view text) const;
  /// The integers in a dictionary, in its order, and all else of it as tokens; if `only` is a name, the integer of that.
  Expansion named_integers(uint64_t attribute, std::string_view only);
  /// The text of an attribute that is a string.
  std::string_view text_of(uint64_t attribute) const;
  /// Nothing for what is no plain tensor.
  std::optional<size_t> rank(uint64_t type) const;

private:
  const BytecodeEntry &vhlo_attribute(uint64_t index) const;
  bool is_vhlo(const BytecodeEntry &entry) const;
  Expansion read_type(uint64_t index);
  Expansion read_attribute(uint64_t index);
  Expansion read_builtin_attribute(uint64_t index);
  bool is_builtin(const BytecodeEntry &entry) const;
  bool is_si64(uint64_t type) const;
  void types(Cursor &cursor, Expansion &out);
  void attributes(Cursor &cursor, Expansion &out);
  void integer(Cursor &cursor, Expansion &out);
  int bits_of(uint64_t type) const;
  uint64_t element_type(uint64_t tensor_type) const;
  std::string_view string_attribute(uint64_t index) const;

  const Bytecode &bytecode_;
  std::vector<std::optional<Expansion>> types_, attributes_;
  int depth_ = 0;
};

} // namespace disc::bytecode
