// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A relocatable object placed in memory: text readable and executable, everything else read-only, nothing both
// writable and executable at any time.
#pragma once

#include "elf_object.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace disc {

/// Owns the mapping; it is unmapped on destruction. Throws Error(artifact) on a malformed object, a relocation that
/// cannot be applied, writable data, or a symbol that is neither defined nor on the list of library functions.
class ObjectCode {
public:
  explicit ObjectCode(std::string_view bytes);
  ~ObjectCode();
  ObjectCode(const ObjectCode &) = delete;
  ObjectCode &operator=(const ObjectCode &) = delete;

  /// The address of a function defined by the object; throws when there is none of that name.
  void *function(const std::string &name) const;
  std::vector<std::string> function_names() const;

  /// The bytes of a constant of that name; none when there is no such constant.
  std::string_view constant(const std::string &name) const;

  /// The name of the function at an address; empty when there is none.
  std::string function_at(const void *address) const;
  size_t mapped_bytes() const { return size_; }

  /// Appends this object's functions to /tmp/perf-PID.map, where Linux perf looks for the names of generated code.
  void write_perf_map() const;

private:
  struct Function {
    uint64_t address;
    uint64_t size;
  };
  struct Placed {
    bool allocated = false;
    bool executable = false;
    uint64_t address = 0;
    uint64_t size = 0;
  };

  void place(const ElfObject &object);
  void scan_relocations(const ElfObject &object);
  void map(const ElfObject &object);
  void relocate(const ElfObject &object);
  void apply(const ElfObject &object, const Placed &target, const Elf64_Rela &relocation);
  void fill_stubs();
  void protect();
  void collect_functions(const ElfObject &object);
  void collect_constants(const ElfObject &object);
  const Elf64_Sym &symbol_of(const ElfObject &object, const Elf64_Rela &relocation) const;
  uint64_t definition(const ElfObject &object, const Elf64_Sym &symbol) const;
  void unmap();

  std::vector<Placed> placed_;                              // by section index; offsets until mapped, then addresses
  std::unordered_map<uint64_t, uint64_t> stub_of_symbol_;   // symbol index -> stub offset (external functions)
  std::unordered_map<uint64_t, uint64_t> slot_of_symbol_;   // symbol index -> offset of its address slot
  std::unordered_map<uint64_t, uint64_t> library_address_;  // symbol index -> address (external functions)
  std::unordered_map<std::string, Function> functions_;
  std::unordered_map<std::string, std::string_view> constants_;
  uint64_t text_size_ = 0; // bytes from the start of the mapping, whole pages, stubs included
  uint64_t next_stub_ = 0;
  uint64_t next_slot_ = 0;
  char *base_ = nullptr;
  size_t size_ = 0;
};

} // namespace disc
