// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ops.h"

namespace disc::bytecode {

void skip_use_orders(Cursor &cursor, uint64_t value_count) {
  uint64_t values = value_count > 1 ? cursor.varint() : 1;
  for (; values > 0; --values) {
    if (value_count > 1)
      cursor.varint();
    for (uint64_t left = cursor.varint() >> 1; left > 0; --left)
      cursor.varint();
  }
}

BytecodeOp read_op(const Bytecode &bytecode, Cursor &cursor) {
  BytecodeOp op{cursor.varint(), cursor.byte(), {}, {}, {}, {}};
  const OpName &name = at(bytecode.ops, op.name);
  std::string_view dialect = bytecode.dialects[name.dialect];
  if (dialect != "vhlo" && (dialect != "builtin" || name.name != "module"))
    throw Unreadable("an op is not of VHLO");
  if (name.name.empty() || (op.parts & has_successors))
    throw Unreadable("an op is not known");
  cursor.varint(); // the location
  if (op.parts & has_attributes)
    op.dictionary = cursor.varint();
  if (op.parts & has_properties)
    op.properties = cursor.varint();
  auto list = [&](OpPart part, std::vector<uint64_t> &out) {
    for (uint64_t left = op.parts & part ? cursor.count() : 0; left > 0; --left)
      out.push_back(cursor.varint());
  };
  list(has_results, op.results);
  list(has_operands, op.operands);
  if (op.parts & has_use_orders)
    skip_use_orders(cursor, op.results.size());
  return op;
}

} // namespace disc::bytecode
