// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "served_program.h"

#include "core/error.h"

namespace disc::pjrt {

namespace {

/// Whether the sizes, where they are all known, satisfy the program's checks.
bool runs_at(const Executable &executable, const std::vector<int64_t> &symbols) {
  if (symbols.size() != executable.program().symbols.size())
    return true;
  try {
    executable.first_plan(symbols);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::shape)
      throw;
    return false;
  }
  return true;
}

} // namespace

TableExecutable table_executable(Compiled compiled) {
  auto kept = std::make_shared<Compiled>(std::move(compiled));
  const Executable &executable = *kept->executable;
  auto fits = [kept](const std::vector<int64_t> &symbols) { return runs_at(*kept->executable, symbols); };
  return {kept, static_cast<size_t>(2 * executable.code_bytes() + executable.constant_bytes()), fits};
}

Compiled compiled_of(Served served, std::function<Compiled()> compile) {
  if (served.not_compiled) {
    Compiled compiled;
    compiled.executable = served.not_compiled->executable;
    compiled.not_compiled = std::make_shared<const NotCompiled>(*std::move(served.not_compiled), std::move(compile));
    return compiled;
  }
  Compiled compiled = *static_cast<Compiled *>(served.executable.get());
  size_t solved = compiled.executable->program().symbols.size(); // those that follow are sizes of no argument
  if (served.symbols.size() > solved)
    served.symbols.resize(solved);
  compiled.symbols = std::move(served.symbols); // none where the program has sizes that are not known
  for (const HiddenArgument &argument : served.hidden)
    compiled.hidden.push_back(block_of(*compiled.executable, argument.bytes));
  return compiled;
}

} // namespace disc::pjrt
