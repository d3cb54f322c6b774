// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading an ELF64 x86-64 relocatable object with every access checked against the file's bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <elf.h>
#include <string>
#include <string_view>
#include <vector>

namespace disc {

/// A view of an object file. The bytes must outlive the view. Throws Error(artifact) on anything malformed.
class ElfObject {
public:
  explicit ElfObject(std::string_view bytes);

  const std::vector<Elf64_Shdr> &sections() const { return sections_; }
  const std::vector<Elf64_Sym> &symbols() const { return symbols_; }
  std::string section_name(size_t index) const;
  std::string symbol_name(const Elf64_Sym &symbol) const;

  /// The bytes of a section in the file; empty for SHT_NOBITS.
  std::string_view contents(const Elf64_Shdr &section) const;

  /// The entries of a SHT_RELA section.
  std::vector<Elf64_Rela> relocations(const Elf64_Shdr &section) const;

private:
  std::string_view range(uint64_t offset, uint64_t size, const char *what) const;
  std::string text_at(const Elf64_Shdr &table, uint64_t offset) const;
  void check_header(const Elf64_Ehdr &header) const;
  void read_symbols();

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  size_t name_table_ = 0;
  size_t symbol_text_table_ = 0;
};

} // namespace disc
