// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elf_object.h"

#include "core/error.h"

#include <cstring>

namespace disc {

namespace {

template <typename Entry> std::vector<Entry> entries_of(std::string_view bytes, uint64_t entry_size, const char *what) {
  if (entry_size != sizeof(Entry) || bytes.size() % sizeof(Entry) != 0)
    bad_artifact(std::string("object: entries of the ") + what + " have a wrong size");
  std::vector<Entry> result(bytes.size() / sizeof(Entry));
  if (!result.empty())
    std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

} // namespace

ElfObject::ElfObject(std::string_view bytes) : bytes_(bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, range(0, sizeof header, "header").data(), sizeof header);
  check_header(header);
  uint64_t table_size = uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  sections_ = entries_of<Elf64_Shdr>(range(header.e_shoff, table_size, "section table"), header.e_shentsize,
                                     "section table");
  name_table_ = header.e_shstrndx;
  for (const Elf64_Shdr &section : sections_)
    (void)contents(section);
  if (sections_[name_table_].sh_type != SHT_STRTAB)
    bad_artifact("object: the section name table is not a string table");
  read_symbols();
}

void ElfObject::check_header(const Elf64_Ehdr &header) const {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    bad_artifact("object: not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    bad_artifact("object: not a 64-bit little-endian ELF file");
  if (header.e_type != ET_REL)
    bad_artifact("object: not a relocatable ELF file");
  if (header.e_machine != EM_X86_64)
    bad_artifact("object: made for another processor (ELF machine " + std::to_string(header.e_machine) + ")");
  if (header.e_version != EV_CURRENT || header.e_ident[EI_VERSION] != EV_CURRENT)
    bad_artifact("object: unknown ELF version");
  if (header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum)
    bad_artifact("object: the section table is empty or has no names");
}

std::string_view ElfObject::range(uint64_t offset, uint64_t size, const char *what) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset)
    bad_artifact(std::string("object: the ") + what + " lies outside the file");
  return bytes_.substr(offset, size);
}

std::string_view ElfObject::contents(const Elf64_Shdr &section) const {
  if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL)
    return {};
  return range(section.sh_offset, section.sh_size, "section");
}

std::string ElfObject::text_at(const Elf64_Shdr &table, uint64_t offset) const {
  std::string_view text = contents(table);
  if (offset >= text.size())
    bad_artifact("object: a name lies outside its string table");
  size_t end = text.find('\0', offset);
  if (end == std::string_view::npos)
    bad_artifact("object: a name is not terminated");
  return std::string(text.substr(offset, end - offset));
}

std::string ElfObject::section_name(size_t index) const {
  return text_at(sections_[name_table_], sections_[index].sh_name);
}

std::string ElfObject::symbol_name(const Elf64_Sym &symbol) const {
  return text_at(sections_[symbol_text_table_], symbol.st_name);
}

std::vector<Elf64_Rela> ElfObject::relocations(const Elf64_Shdr &section) const {
  return entries_of<Elf64_Rela>(contents(section), section.sh_entsize, "relocation table");
}

void ElfObject::read_symbols() {
  bool seen = false;
  for (const Elf64_Shdr &section : sections_) {
    if (section.sh_type == SHT_SYMTAB_SHNDX)
      bad_artifact("object: more sections than the plain symbol table can name");
    if (section.sh_type != SHT_SYMTAB)
      continue;
    if (seen)
      bad_artifact("object: two symbol tables");
    seen = true;
    if (section.sh_link >= sections_.size() || sections_[section.sh_link].sh_type != SHT_STRTAB)
      bad_artifact("object: the symbol table has no string table");
    symbol_text_table_ = section.sh_link;
    symbols_ = entries_of<Elf64_Sym>(contents(section), section.sh_entsize, "symbol table");
  }
}

} // namespace disc
