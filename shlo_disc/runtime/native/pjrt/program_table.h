// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The programs that were compiled, found again at other sizes.
//
// The first program of a skeleton is compiled as it is. When one with other sizes arrives, the compiler is asked for a
// symbolic program that both are instances of. From then on a program is served by it if every one of its numbers is
// what the symbolic program has there at these sizes: then the two are one program, and nothing was guessed. Where one
// is not, the compiler is asked again, with the programs that were served until then: they refute what was guessed.
// Small programs are interpreted before any of that, until those of their skeleton are hot.
#pragma once

#include "fingerprint.h"
#include "interpreted_program.h"
#include "program_reader.h"
#include "size_expressions.h"

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace disc::pjrt {

/// An executable of whoever uses the table, the memory that it takes, and whether it runs at values of its symbols: its
/// ops may need what the numbers of an instance do not tell, such as a slice that lies inside. Null: at all values.
struct TableExecutable {
  std::shared_ptr<void> executable;
  size_t bytes = 0;
  std::function<bool(const std::vector<int64_t> &symbols)> runs_at = nullptr;
};

/// A program whose sizes are symbols. It takes the arguments of its instances, then the constants in `hidden`, and where
/// some symbols are sizes of no argument, an array without elements that has these as sizes, and 0 as the last one.
struct SymbolicProgram {
  static constexpr uint32_t any = UINT32_MAX;

  TableExecutable compiled;
  std::vector<uint32_t> symbols;  // the number that each symbol is
  std::vector<int64_t> least;     // the smallest value of each symbol
  std::vector<SizeStep> steps;
  std::vector<uint32_t> expected; // for each number the step that gives it; `any` in hidden constants
  std::vector<uint32_t> hidden;   // constants of the instance
  std::vector<uint32_t> given;    // symbols that are sizes of no argument

  /// The symbols' values if the program is this one at some sizes.
  std::optional<std::vector<int64_t>> sizes_of(const StaticProgram &program) const;
};

/// A constant of an instance, for its symbolic program: one element of a splat, or all; a boolean is a byte. Or the array
/// of sizes that are none of an argument.
struct HiddenArgument {
  std::string bytes;
  std::vector<int64_t> sizes;
};

/// An executable for a program, with the arguments that it takes after those of its callers: of a program that was
/// compiled as it is the numbers of its functions, 64 bits each.
struct Served {
  enum How { compiled, compiled_symbolic, known, instance, interpreted };
  std::shared_ptr<void> executable;
  How how;
  std::vector<int64_t> symbols; // their values, of a symbolic program
  std::vector<HiddenArgument> hidden;
  std::string unreadable; // why the program could not be read, if it could not
  std::optional<Interpreted> not_compiled = std::nullopt; // in place of an executable
};

/// What compiles. Its functions are called without locks of the table's users, for one program of a skeleton at a time.
struct ProgramCompiler {
  std::function<TableExecutable(std::string_view program, std::string_view options)> compile;
  /// A program that has the last of these as an instance, and as many others as it can; nothing when there is none.
  std::function<std::optional<SymbolicProgram>(const std::vector<std::string_view> &programs, std::string_view options)>
      generalize;
  /// Programs that other processes have compiled and kept: one as it is, and the symbolic ones of a skeleton.
  std::function<std::optional<TableExecutable>(std::string_view program)> kept = nullptr;
  std::function<std::vector<SymbolicProgram>(std::string_view skeleton)> kept_symbolic = nullptr;
  /// The longest run of a program that need not be compiled, in nanoseconds; 0: all are compiled.
  int64_t most_interpreted = 0;
};

struct TableCounts {
  std::atomic<size_t> unreadable = 0, compiled = 0, compiled_symbolic = 0, known = 0, instances = 0, not_general = 0,
                      interpreted = 0;
};

/// Any number of threads may call it.
class ProgramTable {
public:
  /// limit: the bytes of programs and executables to keep; what was used longest ago goes first.
  explicit ProgramTable(size_t limit) : limit_(limit) {}
  /// Throws what the compiler throws.
  Served compile(std::string_view program, std::string_view options, const ProgramCompiler &compiler);
  size_t bytes() const;
  const TableCounts &counts() const { return counts_; }
  void clear();

private:
  struct Sample;
  struct Entry;

  std::shared_ptr<Entry> entry_of(const StaticProgram &program, std::string_view options);
  void note_bytes(const std::shared_ptr<Entry> &entry, int64_t more);
  static int64_t add_sample(std::vector<Sample> &samples, Sample sample);
  static int64_t add_symbolic(std::vector<SymbolicProgram> &all, SymbolicProgram made);
  std::optional<Served> serve(const std::shared_ptr<Entry> &entry, const StaticProgram &program, std::string_view bytes);
  std::optional<Served> generalize(const std::shared_ptr<Entry> &entry, const StaticProgram &program, std::string_view bytes,
                                   const ProgramCompiler &compiler);
  std::optional<Served> recall(const std::shared_ptr<Entry> &entry, const StaticProgram &program, std::string_view bytes,
                               const ProgramCompiler &compiler);
  std::optional<Served> interpret(const std::shared_ptr<Entry> &entry, const StaticProgram &program,
                                  std::string_view bytes, const ProgramCompiler &compiler);
  void keep_static(const std::shared_ptr<Entry> &entry, const StaticProgram &program, std::string_view bytes,
                   const TableExecutable &made);

  size_t limit_, bytes_ = 0;
  mutable std::mutex mutex_;                // of the two below and of `bytes_`
  std::list<std::shared_ptr<Entry>> order_; // the one used last in front
  std::unordered_multimap<uint64_t, std::list<std::shared_ptr<Entry>>::iterator> entries_;
  TableCounts counts_;
};

} // namespace disc::pjrt
