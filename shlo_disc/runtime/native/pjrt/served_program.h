// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs as the table of programs keeps and serves them.
#pragma once

#include "compile.h"
#include "program_table.h"

namespace disc::pjrt {

/// For the table: a program without the parts that one of its instances has for itself.
TableExecutable table_executable(Compiled compiled);

/// A program that was served by what `table_executable` made, or is interpreted. compile: compiles it nevertheless.
Compiled compiled_of(Served served, std::function<Compiled()> compile);

} // namespace disc::pjrt
