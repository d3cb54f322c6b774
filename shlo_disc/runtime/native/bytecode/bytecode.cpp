// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The format is described in mlir/docs/BytecodeFormat.md of LLVM.
#include "bytecode.h"

#include <bit>
#include <cstring>

namespace disc::bytecode {

namespace {

constexpr std::string_view magic = "ML\xefR";
constexpr uint64_t oldest_version = 5, newest_version = 6; // 5: op names say whether they are registered

enum Section : unsigned { strings, dialects, entries, entry_offsets, ir, resources, properties = 8 };

constexpr unsigned section_count = 9;

void read_strings(Cursor cursor, Bytecode &out) {
  std::vector<uint64_t> sizes(cursor.count());
  for (size_t i = sizes.size(); i-- > 0;)
    sizes[i] = cursor.varint();
  for (uint64_t size : sizes) {
    std::string_view bytes = cursor.bytes(size);
    if (bytes.empty() || bytes.back() != '\0')
      throw Unreadable("a string does not end");
    out.strings.push_back(bytes.substr(0, size - 1));
  }
}

/// Calls `read` for each element of a list that is grouped by dialect.
template <typename Read> void read_group(Cursor &cursor, const Bytecode &out, const Read &read) {
  uint64_t dialect = cursor.varint();
  at(out.dialects, dialect);
  for (uint64_t left = cursor.varint(); left > 0; --left)
    read(static_cast<uint32_t>(dialect));
}

void read_dialects(Cursor cursor, Bytecode &out) {
  for (uint64_t left = cursor.count(); left > 0; --left) {
    uint64_t name = cursor.varint();
    out.dialects.push_back(at(out.strings, name >> 1));
    if (name & 1)
      cursor.section();
  }
  cursor.varint(); // the number of names
  while (!cursor.empty())
    read_group(cursor, out, [&](uint32_t dialect) {
      out.ops.push_back({dialect, at(out.strings, cursor.varint() >> 1)});
    });
}

void read_entries(std::string_view bytes, Cursor offsets, Bytecode &out) {
  Cursor data(bytes);
  uint64_t attributes = offsets.varint(), types = offsets.varint();
  auto fill = [&](std::vector<BytecodeEntry> &table, uint64_t count) {
    while (table.size() < count)
      read_group(offsets, out, [&](uint32_t dialect) {
        uint64_t size = offsets.varint();
        table.push_back({data.bytes(size >> 1), dialect, (size & 1) != 0});
      });
  };
  fill(out.attributes, attributes);
  fill(out.types, types);
}

} // namespace

uint8_t Cursor::byte() { return static_cast<uint8_t>(bytes(1)[0]); }

uint64_t Cursor::varint() {
  uint8_t first = byte();
  if (first & 1)
    return first >> 1;
  int more = first == 0 ? 8 : std::countr_zero(first);
  std::string_view bytes = this->bytes(static_cast<uint64_t>(more));
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  if (first == 0)
    return rest;
  return (rest << (7 - more)) | (static_cast<uint64_t>(first) >> (more + 1));
}

uint64_t Cursor::count() {
  uint64_t number = varint();
  if (number > rest_.size())
    throw Unreadable("a list is longer than the program");
  return number;
}

int64_t Cursor::signed_varint() {
  uint64_t bits = varint();
  return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
}

std::string_view Cursor::bytes(uint64_t size) {
  if (size > rest_.size())
    throw Unreadable("the program ends too early");
  std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::string_view Cursor::text() {
  size_t end = rest_.find('\0');
  if (end == std::string_view::npos)
    throw Unreadable("a string does not end");
  std::string_view found = bytes(end);
  bytes(1);
  return found;
}

std::pair<unsigned, std::string_view> Cursor::section() {
  uint8_t kind = byte();
  uint64_t size = varint();
  if (kind & 0x80) {
    varint(); // the alignment; padding follows
    while (!rest_.empty() && static_cast<uint8_t>(rest_.front()) == 0xCB)
      rest_.remove_prefix(1);
  }
  return {kind & 0x7Fu, bytes(size)};
}

Bytecode read_bytecode(std::string_view bytes) {
  Cursor cursor(bytes);
  if (cursor.bytes(magic.size()) != magic)
    throw Unreadable("this is not MLIR bytecode");
  Bytecode out;
  out.version = cursor.varint();
  if (out.version < oldest_version || out.version > newest_version)
    throw Unreadable("this version of MLIR bytecode is not known");
  cursor.text(); // who wrote it
  std::string_view sections[section_count];
  while (!cursor.empty()) {
    auto [kind, contents] = cursor.section();
    if (kind >= section_count)
      throw Unreadable("a section is not known");
    sections[kind] = contents;
  }
  if (!sections[Section::resources].empty())
    throw Unreadable("the program has resources");
  read_strings(Cursor(sections[Section::strings]), out);
  read_dialects(Cursor(sections[Section::dialects]), out);
  read_entries(sections[Section::entries], Cursor(sections[Section::entry_offsets]), out);
  if (Cursor cursor(sections[Section::properties]); !cursor.empty())
    for (uint64_t left = cursor.count(); left > 0; --left)
      out.properties.push_back(cursor.bytes(cursor.varint()));
  out.body = sections[Section::ir];
  return out;
}

} // namespace disc::bytecode
