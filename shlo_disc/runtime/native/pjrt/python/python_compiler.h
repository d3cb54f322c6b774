// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a table of programs takes from a compiler that is written in Python.
#pragma once

#include "pjrt/program_table.h"

#include <nanobind/nanobind.h>

namespace disc {

/// Makes what the table keeps out of an executable.
using AdoptExecutable = std::function<pjrt::TableExecutable(nanobind::object)>;

/// From (executable, symbols, steps, expected, hidden), the fields of SymbolicProgram, -1 standing for `any`; nothing
/// from None.
std::optional<pjrt::SymbolicProgram> symbolic_program(const nanobind::object &found, const AdoptExecutable &adopt);

/// Programs as a list of bytes.
nanobind::list list_of(const std::vector<std::string_view> &programs);

nanobind::dict counts_of(const pjrt::ProgramTable &table);

void bind_programs(nanobind::module_ &module);

/// Whether somebody wants to know of each program that the plugin is given.
bool observes_programs();

/// In what way a program was served, as Python has it.
const char *name_of(pjrt::Served::How how);

namespace pjrt {

/// The programs that were compiled. Lives as long as the process.
ProgramTable &program_table();

} // namespace pjrt

} // namespace disc
