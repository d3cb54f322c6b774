// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.h"

#include "attributes.h"
#include "fragment_reader.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

using bytecode::at;
using bytecode::Bytecode;
using bytecode::BytecodeOp;
using bytecode::Cursor;
using bytecode::Unreadable;

/// What frameworks say of arguments and results that does not concern a run on one device.
bool says_nothing(std::string_view name) {
  static constexpr std::string_view names[] = {"jax.result_info", "mhlo.sharding", "jax.arg_info"};
  return std::ranges::find(names, name) != std::end(names);
}

bool donates(std::string_view name) { return name == "jax.buffer_donor" || name == "tf.aliasing_output"; }

/// The functions of a module by their names, and where the public one begins.
std::map<std::string_view, Function> functions_of(const Bytecode &bytecode, Cursor &cursor) {
  std::map<std::string_view, Function> out;
  if (cursor.varint() != 1)
    throw Unsupported("a module has not one block");
  cursor.varint(); // values: none
  uint64_t header = cursor.varint();
  if (header & 1)
    throw Unsupported("a module has arguments");
  for (uint64_t left = header >> 1; left > 0; --left) {
    Function function{cursor, {}, {}};
    BytecodeOp op = read_op(bytecode, cursor);
    if (bytecode.ops[op.name].name != "func_v1" || !op.properties || !(op.parts & bytecode::has_regions) ||
        cursor.varint() != 3)
      throw Unsupported("something in the module is no function");
    cursor.section();
    auto attributes = attributes_of(bytecode, op);
    Cursor values(at(bytecode.properties, *op.properties));
    function.said_of_arguments = names_of(bytecode, values.varint());
    values.varint(); // its type
    function.said_of_results = names_of(bytecode, values.varint());
    function.is_public = text_of(attributes, "sym_visibility") != "private";
    if (!out.emplace(text_of(attributes, "sym_name"), std::move(function)).second)
      throw Unsupported("two functions have one name");
  }
  return out;
}

/// Which arguments are donated. Throws Unsupported where something is said that concerns a run.
std::vector<bool> donated_of(const Function &function, size_t count) {
  std::vector<bool> out(count);
  for (size_t i = 0; i < function.said_of_arguments.size(); ++i)
    for (std::string_view name : function.said_of_arguments[i])
      if (donates(name) && i < count)
        out[i] = true;
      else if (!says_nothing(name))
        throw Unsupported("an argument that is more than an array");
  for (const std::vector<std::string_view> &names : function.said_of_results)
    if (!std::ranges::all_of(names, says_nothing))
      throw Unsupported("a result that is more than an array");
  return out;
}

} // namespace

std::shared_ptr<const Program> Program::read(std::string_view bytes, int64_t most_work) {
  Bytecode bytecode = bytecode::read_bytecode(bytes);
  auto program = std::make_shared<Program>();
  Shared shared{bytecode, bytecode::Elements(bytecode), {}, program->constants_, program->constant_bytes, program->op_count,
                most_work};
  Cursor cursor(bytecode.body);
  // The body is a block of one op, the module.
  if (cursor.varint() != 2)
    throw Unreadable("there is not one module");
  BytecodeOp module = read_op(bytecode, cursor);
  if (bytecode.ops[module.name].name != "module" || !(module.parts & bytecode::has_regions))
    throw Unreadable("there is no module");
  program->name = module_name(bytecode, module);
  uint64_t header = cursor.varint();
  Cursor section(header & 1 ? cursor.section().second : std::string_view());
  shared.functions = functions_of(bytecode, header & 1 ? section : cursor);
  auto main = std::ranges::find_if(shared.functions, [](const auto &named) { return named.second.is_public; });
  if (main == shared.functions.end())
    throw Unsupported("there is no public function");
  FragmentReader reader(shared);
  program->arguments = reader.types_of_function(main->second.op);
  Ids arguments;
  for (const Type &type : program->arguments)
    arguments.push_back(reader.argument(type));
  program->donated = donated_of(main->second, arguments.size());
  Ids results = reader.function(main->second.op, arguments, reader.steps);
  for (uint32_t value : results)
    program->results.push_back(reader.type(value));
  program->may_stop = reader.may_stop();
  program->fragment_ = reader.finish(results);
  return program;
}

} // namespace disc::interpreter
