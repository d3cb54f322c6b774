// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What compiles for a client in a process without Python: the table of its programs, the compile cache, and behind them
// a process that has the compiler.
#pragma once

#include "compiler_process.h"
#include "pjrt/compile.h"
#include "pjrt/program_table.h"

namespace disc::pjrt {

/// Any number of threads may call it.
class Compiler : public std::enable_shared_from_this<Compiler> {
public:
  Compiler(const std::string &command, std::chrono::seconds limit) : process_(command, limit), programs_(kTableBytes) {}

  /// The functions of compile.h, for processors. Programs are not trusted: the compiler has each read in a process of its
  /// own before it compiles it.
  Compiled compile(std::string_view program, int max_programs, int64_t most_interpreted);
  std::pair<Compiled, std::string> compile_for_devices(std::string_view program, int64_t replicas, int64_t partitions,
                                                       int max_programs);
  std::string serialize(const Compiled &compiled, std::string_view program, std::string_view options);

private:
  static constexpr size_t kTableBytes = size_t{1} << 30;

  Answer ask(Request request);
  Compiled load(std::string_view artifact);
  ProgramCompiler in_process(int max_programs, int64_t participants, int64_t most_interpreted);
  std::optional<SymbolicProgram> symbolic_program(const Answer &answer);
  std::optional<SymbolicProgram> generalize(const std::vector<std::string_view> &programs, int max_programs,
                                            int64_t participants);
  std::vector<SymbolicProgram> kept_symbolic(std::string_view skeleton, int64_t participants);

  CompilerProcess process_;
  ProgramTable programs_;
};

/// The compiler of programs that are compiled for no client.
const std::shared_ptr<Compiler> &compiler_without_client();

/// Lets programs call a function of XLA's FFI.
void add_function(const std::string &name);

} // namespace disc::pjrt
