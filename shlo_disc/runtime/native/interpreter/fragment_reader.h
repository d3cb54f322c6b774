// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the steps of a program, or of the body of an op, out of MLIR bytecode.
#pragma once

#include "attributes.h"
#include "fragment.h"
#include "bytecode/ops.h"
#include "bytecode/elements.h"
#include "bytecode/value_scopes.h"

namespace disc::interpreter {

/// A function of the module, and where its op begins.
struct Function {
  bytecode::Cursor op;
  std::vector<std::vector<std::string_view>> said_of_arguments, said_of_results;
  bool is_public = false;
};

/// What the fragments of a program have in common.
struct Shared {
  const bytecode::Bytecode &bytecode;
  bytecode::Elements elements;
  std::map<std::string_view, Function> functions;
  std::vector<std::unique_ptr<char[]>> &constants;
  int64_t &constant_bytes;
  size_t &op_count;
  int64_t work_left; // of the ops that run in any case
};

struct Value {
  Type type;
  uint32_t root;      // the value whose elements these are
  int64_t begin, end; // of a root
  size_t depth;       // of loops around it
};

using Ids = std::vector<uint32_t>;

/// Reads the steps of a fragment. Values are numbers. Functions throw Unsupported and bytecode::Unreadable.
class FragmentReader {
public:
  explicit FragmentReader(Shared &shared) : shared_(shared), scopes_(shared.bytecode.body.size()) {}

  /// For the body of an op of `around`, of whose values the body may read constants.
  FragmentReader(FragmentReader &around, bool is_isolated) : FragmentReader(around.shared_) {
    around_ = &around;
    outside_ = is_isolated ? 0 : around.scopes_.size() + around.numbers_before();
    scopes_.enter_isolated();
  }

  /// The body of a function, whose op begins at the cursor. Returns what it returns.
  Ids function(bytecode::Cursor cursor, const Ids &arguments, Steps &into);
  /// A region of an op, of one block, in the scope of what is around it.
  Ids region(bytecode::Cursor &cursor, const std::vector<uint32_t> *arguments, Steps &steps);
  /// A value of the caller's. Those are the first ones.
  uint32_t argument(Type type);
  /// The types of the arguments of a function, whose op begins at the cursor.
  std::vector<Type> types_of_function(bytecode::Cursor cursor);
  /// What was read. Nothing is read by this reader any more.
  Fragment finish(const Ids &results);

  const Type &type(uint32_t value) const { return values_[value].type; }
  Place::Kind place(uint32_t value) const { return places_[value].kind; }
  bool may_stop() const { return may_stop_; }

  Steps steps;
  Body body; // what is known of this fragment as one

private:
  void op(bytecode::Cursor &cursor, Steps &steps);
  void constant(const bytecode::BytecodeOp &op);
  void loop(bytecode::Cursor &cursor, const bytecode::BytecodeOp &op, Steps &steps);
  void branches(bytecode::Cursor &cursor, const bytecode::BytecodeOp &op, Steps &steps);
  void kernel(bytecode::Cursor &cursor, const bytecode::BytecodeOp &op, Steps &steps);
  void call(const bytecode::BytecodeOp &op, std::string_view name, Steps &steps);
  std::vector<Body> bodies(bytecode::Cursor &cursor);
  Copy copied(uint32_t from, uint32_t to);
  uint32_t add(Type type, Place place);
  uint32_t alias(uint32_t value, Type type);
  uint32_t use(uint64_t number);
  uint32_t outer_constant(uint64_t number);
  /// Values of what is around a body are numbered before its own.
  uint64_t numbers_before() const { return scopes_.is_outermost() ? outside_ : 0; }
  void read(uint32_t value);
  void define(uint32_t value) { scopes_.define({value + 1, 0, 0}); }
  Ids operands(const bytecode::BytecodeOp &op);
  std::string_view name(const bytecode::BytecodeOp &op) const { return plain_name(shared_.bytecode.ops[op.name].name); }

  Shared &shared_;
  bytecode::ValueScopes scopes_;
  std::vector<Value> values_;
  std::vector<Place> places_;
  std::vector<Ids> loops_; // for each loop around, the values of outside that it reads
  Ids returned_;           // by the region that was read last
  int64_t time_ = 0;
  int depth_ = 0, conditions_ = 0;
  bool may_stop_ = false;
  FragmentReader *around_ = nullptr;    // of a body
  uint64_t outside_ = 0;                // values of what is around
  std::map<uint64_t, uint32_t> outer_; // those that were read, by their numbers
};

} // namespace disc::interpreter
