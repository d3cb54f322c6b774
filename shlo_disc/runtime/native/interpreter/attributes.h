// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Types and attributes of ops, as the interpreter's kernels take them, out of MLIR bytecode.
#pragma once

#include "op.h"
#include "bytecode/ops.h"

#include <string>

namespace disc::interpreter {

/// The name of an op without its version.
std::string_view plain_name(std::string_view name);

/// Throws Unsupported for what is no array of known sizes, or has elements of another kind.
Type type_of(const bytecode::Bytecode &bytecode, uint64_t index);

/// Those that an op has by its definition. Throws Unsupported where they are not those that are known.
std::map<std::string_view, Attribute> attributes_of(const bytecode::Bytecode &bytecode, const bytecode::BytecodeOp &op);

/// The text of one of them. Throws Unsupported where there is none of that name.
std::string_view text_of(const std::map<std::string_view, Attribute> &attributes, std::string_view name);

/// The names in the dictionaries of an array of them: for each argument or result of a function what is said of it.
std::vector<std::vector<std::string_view>> names_of(const bytecode::Bytecode &bytecode, uint64_t attribute);

/// The name of a module; empty where it has none.
std::string module_name(const bytecode::Bytecode &bytecode, const bytecode::BytecodeOp &module);

} // namespace disc::interpreter
