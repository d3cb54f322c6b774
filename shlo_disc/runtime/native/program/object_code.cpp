// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Relocation arithmetic follows the System V ABI, AMD64 supplement, section 4.4.
#include "object_code.h"

#include "core/error.h"
#include "library_symbols.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <sys/mman.h>

namespace disc {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kStubBytes = 16;
constexpr uint64_t kLimit = uint64_t{1} << 30; // every place within reach of a signed 32-bit displacement

uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

bool needs_slot(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

bool is_relative(uint32_t type) { return type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64; }

bool is_absolute(uint32_t type) { return type == R_X86_64_64 || type == R_X86_64_32 || type == R_X86_64_32S; }

uint64_t width_of(uint32_t type) { return type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4; }

void check_placeable(const ElfObject &object, size_t index, const Elf64_Shdr &section) {
  uint64_t alignment = section.sh_addralign;
  if (alignment & (alignment - 1))
    bad_artifact("object: section alignment is not a power of two");
  if (alignment > kPage || section.sh_size > kLimit)
    bad_artifact("object: a section is too large or too strictly aligned");
  if (section.sh_flags & SHF_TLS)
    bad_artifact("object: thread-local data in " + object.section_name(index));
  // Relocated constants are written before the mapping is sealed, so they may be read-only afterwards.
  bool constant = object.section_name(index).starts_with(".data.rel.ro");
  if ((section.sh_flags & SHF_WRITE) && section.sh_size > 0 && !constant)
    bad_artifact("object: writable data in " + object.section_name(index));
  if ((section.sh_flags & SHF_WRITE) && (section.sh_flags & SHF_EXECINSTR))
    bad_artifact("object: section " + object.section_name(index) + " is both writable and executable");
}

template <typename Value> void store(uint64_t address, Value value) {
  std::memcpy(reinterpret_cast<void *>(address), &value, sizeof value);
}

void store_signed32(uint64_t address, int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    bad_artifact("object: a relocation is out of reach");
  store(address, static_cast<int32_t>(value));
}

} // namespace

ObjectCode::ObjectCode(std::string_view bytes) {
  ElfObject object(bytes);
  try {
    place(object);
    map(object);
    relocate(object);
    fill_stubs();
    collect_functions(object);
    collect_constants(object);
    protect();
  } catch (...) {
    unmap();
    throw;
  }
}

ObjectCode::~ObjectCode() { unmap(); }

void ObjectCode::unmap() {
  if (base_)
    munmap(base_, size_);
  base_ = nullptr;
}

/// Lays out text, then stubs, then on a fresh page the constants and the address slots. Fills offsets only.
void ObjectCode::place(const ElfObject &object) {
  const auto &sections = object.sections();
  placed_.resize(sections.size());
  uint64_t offset = 0;
  auto place_if = [&](bool executable) {
    for (size_t i = 0; i < sections.size(); ++i) {
      bool is_executable = (sections[i].sh_flags & SHF_EXECINSTR) != 0;
      if (!(sections[i].sh_flags & SHF_ALLOC) || is_executable != executable)
        continue;
      check_placeable(object, i, sections[i]);
      offset = align_up(offset, std::max<uint64_t>(sections[i].sh_addralign, 1));
      placed_[i] = {true, executable, offset, sections[i].sh_size};
      offset += sections[i].sh_size;
      if (offset > kLimit)
        bad_artifact("object: too large");
    }
  };
  place_if(true);
  scan_relocations(object);
  next_stub_ = align_up(offset, kStubBytes);
  text_size_ = offset = align_up(next_stub_ + stub_of_symbol_.size() * kStubBytes, kPage);
  place_if(false);
  next_slot_ = align_up(offset, 8);
  size_ = align_up(std::max<uint64_t>(next_slot_ + slot_of_symbol_.size() * 8, kPage), kPage);
  for (auto &[symbol, stub] : stub_of_symbol_)
    stub = next_stub_, next_stub_ += kStubBytes;
  for (auto &[symbol, slot] : slot_of_symbol_)
    slot = next_slot_, next_slot_ += 8;
}

/// Finds which symbols need a stub or a slot, and refuses relocation kinds and symbols that have no meaning here.
void ObjectCode::scan_relocations(const ElfObject &object) {
  for (const Elf64_Shdr &section : object.sections()) {
    if (section.sh_type != SHT_RELA && section.sh_type != SHT_REL)
      continue;
    if (section.sh_info >= object.sections().size())
      bad_artifact("object: relocations for a section that does not exist");
    if (!(object.sections()[section.sh_info].sh_flags & SHF_ALLOC))
      continue;
    if (section.sh_type == SHT_REL)
      bad_artifact("object: relocations without addends");
    for (const Elf64_Rela &relocation : object.relocations(section)) {
      uint32_t type = ELF64_R_TYPE(relocation.r_info);
      if (type == R_X86_64_NONE)
        continue;
      if (!needs_slot(type) && !is_relative(type) && !is_absolute(type))
        bad_artifact("object: relocation type " + std::to_string(type) + " is not supported");
      uint64_t index = ELF64_R_SYM(relocation.r_info);
      const Elf64_Sym &symbol = symbol_of(object, relocation);
      if (needs_slot(type))
        slot_of_symbol_[index] = 0;
      if (symbol.st_shndx != SHN_UNDEF || index == 0)
        continue;
      uint64_t address = library_symbol(object.symbol_name(symbol));
      if (address == 0)
        bad_artifact("object: undefined symbol '" + object.symbol_name(symbol) + "'");
      library_address_[index] = address;
      stub_of_symbol_[index] = 0;
    }
  }
}

const Elf64_Sym &ObjectCode::symbol_of(const ElfObject &object, const Elf64_Rela &relocation) const {
  uint64_t index = ELF64_R_SYM(relocation.r_info);
  if (index >= object.symbols().size())
    bad_artifact("object: a relocation names a symbol that does not exist");
  return object.symbols()[index];
}

void ObjectCode::map(const ElfObject &object) {
  void *base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw AllocationFailure(static_cast<int64_t>(size_), "no address space for code");
  base_ = static_cast<char *>(base);
  // Padding between functions traps instead of sliding into the next one.
  std::memset(base_, 0xCC, text_size_);
  for (size_t i = 0; i < placed_.size(); ++i) {
    if (!placed_[i].allocated)
      continue;
    placed_[i].address += reinterpret_cast<uint64_t>(base_);
    std::string_view bytes = object.contents(object.sections()[i]);
    if (!bytes.empty())
      std::memcpy(reinterpret_cast<void *>(placed_[i].address), bytes.data(), bytes.size());
  }
}

/// The address of a symbol defined in the object, or an absolute value.
uint64_t ObjectCode::definition(const ElfObject &object, const Elf64_Sym &symbol) const {
  if (symbol.st_shndx == SHN_ABS)
    return symbol.st_value;
  if (symbol.st_shndx >= placed_.size() || !placed_[symbol.st_shndx].allocated)
    bad_artifact("object: symbol '" + object.symbol_name(symbol) + "' lies in no loaded section");
  const Placed &section = placed_[symbol.st_shndx];
  if (symbol.st_value > section.size)
    bad_artifact("object: symbol '" + object.symbol_name(symbol) + "' lies outside its section");
  return section.address + symbol.st_value;
}

void ObjectCode::relocate(const ElfObject &object) {
  for (const Elf64_Shdr &section : object.sections()) {
    if (section.sh_type != SHT_RELA || !placed_[section.sh_info].allocated)
      continue;
    if (object.sections()[section.sh_info].sh_type == SHT_NOBITS && section.sh_size > 0)
      bad_artifact("object: relocations in a section without contents");
    for (const Elf64_Rela &relocation : object.relocations(section))
      apply(object, placed_[section.sh_info], relocation);
  }
}

void ObjectCode::apply(const ElfObject &object, const Placed &target, const Elf64_Rela &relocation) {
  uint32_t type = ELF64_R_TYPE(relocation.r_info);
  if (type == R_X86_64_NONE)
    return;
  uint64_t width = width_of(type);
  if (target.size < width || relocation.r_offset > target.size - width)
    bad_artifact("object: a relocation lies outside its section");
  uint64_t index = ELF64_R_SYM(relocation.r_info);
  uint64_t base = reinterpret_cast<uint64_t>(base_);
  uint64_t place = target.address + relocation.r_offset;
  auto stub = stub_of_symbol_.find(index);
  bool external = stub != stub_of_symbol_.end();
  uint64_t value = external       ? base + stub->second
                   : index == 0 ? 0
                                  : definition(object, object.symbols()[index]);
  auto addend = static_cast<uint64_t>(relocation.r_addend);
  if (needs_slot(type)) {
    uint64_t slot = base + slot_of_symbol_.at(index);
    store(slot, external ? library_address_.at(index) : value);
    store_signed32(place, static_cast<int64_t>(slot + addend - place));
  } else if (type == R_X86_64_64) {
    store(place, value + addend);
  } else if (type == R_X86_64_PC64) {
    store(place, value + addend - place);
  } else if (is_relative(type)) {
    store_signed32(place, static_cast<int64_t>(value + addend - place));
  } else if (type == R_X86_64_32S) {
    store_signed32(place, static_cast<int64_t>(value + addend));
  } else {
    if (value + addend > std::numeric_limits<uint32_t>::max())
      bad_artifact("object: not position-independent (an absolute 32-bit address is out of reach)");
    store(place, static_cast<uint32_t>(value + addend));
  }
}

/// Library functions can be further away than a 32-bit displacement: each gets `jmp *0(%rip)` and its address.
void ObjectCode::fill_stubs() {
  for (const auto &[symbol, offset] : stub_of_symbol_) {
    const unsigned char jump[8] = {0xFF, 0x25, 0x02, 0x00, 0x00, 0x00, 0xCC, 0xCC};
    std::memcpy(base_ + offset, jump, sizeof jump);
    std::memcpy(base_ + offset + sizeof jump, &library_address_.at(symbol), sizeof(uint64_t));
  }
}

void ObjectCode::protect() {
  bool failed = mprotect(base_ + text_size_, size_ - text_size_, PROT_READ) != 0;
  if (text_size_ > 0)
    failed |= mprotect(base_, text_size_, PROT_READ | PROT_EXEC) != 0;
  if (failed)
    throw Error(ErrorKind::state, "this system does not allow generated code to be made executable");
}

void ObjectCode::collect_functions(const ElfObject &object) {
  for (const Elf64_Sym &symbol : object.symbols()) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS)
      continue;
    uint64_t address = definition(object, symbol);
    const Placed &section = placed_[symbol.st_shndx];
    if (!section.executable || symbol.st_value >= section.size)
      bad_artifact("object: function '" + object.symbol_name(symbol) + "' is not in the text");
    uint64_t size = std::min<uint64_t>(symbol.st_size, section.size - symbol.st_value);
    functions_[object.symbol_name(symbol)] = {address, size};
  }
}

/// Those that code elsewhere may refer to.
void ObjectCode::collect_constants(const ElfObject &object) {
  for (const Elf64_Sym &symbol : object.symbols()) {
    bool is_global = ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT;
    if (!is_global || symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS)
      continue;
    uint64_t address = definition(object, symbol);
    const Placed &section = placed_[symbol.st_shndx];
    if (symbol.st_value > section.size || symbol.st_size > section.size - symbol.st_value)
      bad_artifact("object: constant '" + object.symbol_name(symbol) + "' lies outside its section");
    constants_[object.symbol_name(symbol)] = {reinterpret_cast<const char *>(address), symbol.st_size};
  }
}

std::string_view ObjectCode::constant(const std::string &name) const {
  auto found = constants_.find(name);
  return found == constants_.end() ? std::string_view() : found->second;
}

void *ObjectCode::function(const std::string &name) const {
  auto found = functions_.find(name);
  if (found == functions_.end())
    bad_artifact("object: no function '" + name + "'");
  return reinterpret_cast<void *>(found->second.address);
}

std::vector<std::string> ObjectCode::function_names() const {
  std::vector<std::string> names;
  for (const auto &[name, function] : functions_)
    names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string ObjectCode::function_at(const void *address) const {
  for (const auto &[name, function] : functions_)
    if (function.address == reinterpret_cast<uint64_t>(address))
      return name;
  return {};
}

} // namespace disc
