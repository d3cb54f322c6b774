// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a program's bytes to an executable. There are two implementations, of which a library has one. The compiler is
// Python's: `python/` calls it in this process, `standalone/` asks another process.
#pragma once

#include "interpreted_program.h"
#include "program/executable.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disc::pjrt {

/// How often a program was called, for whoever observes programs.
struct CallCount : std::enable_shared_from_this<CallCount> {
  std::atomic<uint64_t> value = 0;
};

/// What compiles for a client.
class Compiler;

/// What compiles for a new client; null where this process does. command: the Python interpreter, or empty. limit: the
/// time for one compile; 0: any. Throws INVALID_ARGUMENT for what is no choice here.
std::shared_ptr<Compiler> make_compiler(const std::string &command, std::chrono::seconds limit);

/// What a program is compiled for.
struct Purpose {
  int gpu = -1;         // the number of the GPU, the first one of several; -1: processors
  int max_programs = 0; // that a function may have at all its sizes; 0: any number
  std::shared_ptr<Compiler> compiler = nullptr; // the client's
  int64_t most_interpreted = 0; // nanoseconds of a run of a program that need not be compiled; 0: all are compiled

  Purpose without_interpreter() const { return {gpu, max_programs, compiler}; }
};

struct Compiled;

/// A program that is interpreted, and what compiles it. Any number of threads may compile it at a time.
struct NotCompiled {
  Interpreted interpreted;
  std::function<Compiled()> compile;
  mutable std::atomic<bool> is_refused = false; // by the compiler: it stays interpreted

  bool is_hot() const { return !is_refused && interpreted.is_hot(); }
};

/// What a program became. Programs that differ in their sizes only may share an executable.
struct Compiled {
  std::shared_ptr<const Executable> executable;
  std::vector<int64_t> symbols;               // the sizes of this program, in the order of the executable's symbols
  std::vector<std::shared_ptr<Block>> hidden; // arguments that follow the caller's, the same in every call
  std::shared_ptr<void> artifact;             // the implementation's; any thread may release it
  std::shared_ptr<CallCount> calls;           // null where nobody counts them
  std::string of_devices;                     // attributes of a module that say how arrays lie on several devices
  std::string identity;                       // of code whose program is not at hand: tells it from other code
  std::shared_ptr<const NotCompiled> not_compiled; // null where there is code
};

/// A program as MLIR writes it, which was read and verified in another process: damaged bytes are no danger to that one
/// only. Throws Failure.
std::string read_untrusted(std::string_view program, const Purpose &purpose);

/// Whether a program for one device says something of devices or layouts, which it has to be rewritten without.
inline bool states_placement(std::string_view program) {
  auto contains = [program](std::string_view text) { return program.find(text) != program.npos; };
  return (program.starts_with("ML\xef" "R") && contains("sdy")) || contains("mhlo.layout_mode");
}

/// Compiles bytecode or a portable artifact that is known to be whole. One that was compiled
/// before at other sizes is found again (program_table.h). Code does not depend on the compile options. Throws Failure with what the
/// compiler says, and when the program is one more of its function than there may be.
Compiled compile(std::string_view program, const Purpose &purpose);

/// The GPU with a number, as the process has it.
std::shared_ptr<Device> gpu_device(int ordinal);

/// Compiles a program that several devices run together: what each of them runs, and that program with the shardings of
/// its arguments and results. What each runs is found again at other sizes, as `compile` finds programs.
std::pair<Compiled, std::string> compile_for_devices(std::string_view program, int64_t replicas, int64_t partitions,
                                                     const Purpose &purpose);

/// The same on another GPU.
Compiled loaded_on(const Compiled &compiled, int gpu);

/// The arithmetic of one run on each device; nothing if it depends on sizes that are not known.
std::optional<double> count_flops(const Compiled &compiled);

/// Throws UNIMPLEMENTED when there is no compiler, or Python's lock, which it needs, is not to be had: whoever has it may
/// be waiting for this very call.
void require_compiler();

/// Whether clients load serialized executables, which are native code, without the option `trust`.
bool trusts_executables();

/// Memory of an executable's device with these bytes, for a hidden argument.
inline std::shared_ptr<Block> block_of(const Executable &executable, std::string_view bytes) {
  auto block =
      std::make_shared<Block>(executable.allocator(), static_cast<int64_t>(bytes.size()), BlockKind::constant);
  if (!bytes.empty())
    executable.device()->write(block->address(), bytes.data(), block->bytes());
  return block;
}

/// Lets programs that are compiled from then on call a handler of XLA's FFI by name.
void register_function(const std::string &name, void *handler);

/// The bytes that `deserialize` takes.
std::string serialize(const Compiled &compiled, std::string_view program, std::string_view options);

/// What was serialized.
struct Deserialized {
  Compiled compiled;
  std::string program;
  std::string options;
};
/// `options`: in place of those that were serialized, unless it is empty. `gpu_for`: the number of the GPU that some
/// options mean, or -1.
Deserialized deserialize(std::string_view bytes, std::string options,
                         const std::function<int(const std::string &options)> &gpu_for);

} // namespace disc::pjrt
