// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The container format of MLIR bytecode: sections, and the tables that ops refer to. The bytes may come from anywhere.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace disc::bytecode {

/// Bytes that are no bytecode, or bytecode with something in it that the reader does not know.
class Unreadable : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A place in bytes that never leaves them: reading beyond the end throws Unreadable.
class Cursor {
public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  uint8_t byte();
  uint64_t varint();
  /// A number of things that take at least one byte each, so that a loop over them ends.
  uint64_t count();
  int64_t signed_varint();
  std::string_view bytes(uint64_t size);
  std::string_view text();
  /// The identifier and the contents of a section.
  std::pair<unsigned, std::string_view> section();

private:
  std::string_view rest_;
};

struct BytecodeEntry {
  std::string_view bytes;
  uint32_t dialect;
  bool is_binary; // else it is text in MLIR's syntax
};

struct OpName {
  uint32_t dialect;
  std::string_view name;
};

/// Views of the bytes that were read.
struct Bytecode {
  uint64_t version = 0;
  std::vector<std::string_view> strings, dialects;
  std::vector<OpName> ops;
  std::vector<BytecodeEntry> attributes, types;
  std::vector<std::string_view> properties;
  std::string_view body;
};

/// Throws Unreadable.
Bytecode read_bytecode(std::string_view bytes);

/// The element at an index that was read. Throws Unreadable.
template <typename T> const T &at(const std::vector<T> &table, uint64_t index) {
  if (index >= table.size())
    throw Unreadable("an index is out of range");
  return table[index];
}

} // namespace disc::bytecode
