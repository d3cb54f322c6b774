// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops of VHLO in the body of MLIR bytecode.
#pragma once

#include "bytecode.h"

#include <optional>

namespace disc::bytecode {

enum OpPart : uint8_t {
  has_attributes = 1,
  has_results = 2,
  has_operands = 4,
  has_successors = 8,
  has_regions = 16,
  has_use_orders = 32,
  has_properties = 64,
};

/// What is written of an op before its regions.
struct BytecodeOp {
  uint64_t name; // in the table of ops
  uint8_t parts;
  std::optional<uint64_t> dictionary, properties;
  std::vector<uint64_t> results; // types
  std::vector<uint64_t> operands;
};

/// Reads an op up to its regions. Throws Unreadable for what is neither of VHLO nor a module.
BytecodeOp read_op(const Bytecode &bytecode, Cursor &cursor);

/// Reads over the orders in which values' uses are listed in memory, which say nothing of the program.
void skip_use_orders(Cursor &cursor, uint64_t value_count);

} // namespace disc::bytecode
