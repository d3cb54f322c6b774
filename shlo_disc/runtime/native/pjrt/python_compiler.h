// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler behind a table of programs, when it is written in Python.
#pragma once

#include "program_table.h"

#include <nanobind/nanobind.h>

namespace disc {

/// Callables that take Python's lock themselves:
///   compile(program: bytes, options: bytes) -> executable
///   generalize(programs: list[bytes], options: bytes) -> None or
///     (executable, symbols, steps, expected, hidden), the fields of SymbolicProgram; -1 stands for `any`
/// `adopt` makes what the table keeps out of an executable.
pjrt::ProgramCompiler python_compiler(nanobind::object compile, nanobind::object generalize,
                                      std::function<pjrt::Compiled(nanobind::object)> adopt);

void bind_programs(nanobind::module_ &module);

} // namespace disc
