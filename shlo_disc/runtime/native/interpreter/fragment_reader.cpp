// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fragment_reader.h"

#include "work.h"

#include <algorithm>
#include <cstring>

namespace disc::interpreter {

namespace {

using bytecode::at;
using bytecode::BytecodeOp;
using bytecode::Cursor;

constexpr size_t most_ops = 8192;
constexpr size_t most_values = 16384; // of a fragment
constexpr size_t most_operands = 1024;
constexpr int most_depth = 64;
constexpr int64_t most_constant_bytes = 64 << 20;
constexpr int64_t constant_bytes_of_work = 16; // they are copied when a program is read
constexpr int64_t most_body_bytes = 16 << 10;
constexpr int64_t any_work = INT64_MAX;

/// Whether the regions of an op say how elements are combined.
bool has_bodies(std::string_view name) {
  static constexpr std::string_view names[] = {"map",     "reduce",             "reduce_window",
                                               "scatter", "select_and_scatter", "sort"};
  return std::ranges::find(names, name) != std::end(names);
}

} // namespace

uint32_t FragmentReader::add(Type type, Place place) {
  if (values_.size() == most_values)
    throw Unsupported("the program has too many values");
  auto id = static_cast<uint32_t>(values_.size());
  values_.push_back({std::move(type), id, time_, time_, loops_.size()});
  places_.push_back(place);
  return id;
}

uint32_t FragmentReader::argument(Type type) {
  return add(std::move(type), {Place::argument, static_cast<int64_t>(values_.size()), nullptr});
}

/// The same elements as a value of another type.
uint32_t FragmentReader::alias(uint32_t value, Type type) {
  if (type.count() != values_[value].type.count() || type.dtype != values_[value].type.dtype)
    throw Unsupported("a value is used with other elements than it has");
  uint32_t root = values_[value].root, id = add(std::move(type), places_[root]);
  values_[id].root = root;
  return id;
}

/// Lets a value's elements live until now, or to the end of the outermost loop that it is not of.
void FragmentReader::read(uint32_t value) {
  Value &root = values_[values_[value].root];
  root.end = time_;
  for (size_t loop = root.depth; loop < loops_.size(); ++loop)
    loops_[loop].push_back(values_[value].root);
}

uint32_t FragmentReader::use(uint64_t number) {
  if (number < numbers_before())
    return outer_constant(number);
  uint32_t value = scopes_[number - numbers_before()].id - 1;
  read(value);
  return value;
}

/// A value of what is around the body, by its number there.
uint32_t FragmentReader::outer_constant(uint64_t number) {
  auto known = outer_.find(number);
  if (known != outer_.end())
    return known->second;
  uint32_t outside = around_->use(number);
  if (around_->place(outside) != Place::constant)
    throw Unsupported("the body of an op reads values of what is around it");
  uint32_t value = add(around_->type(outside), around_->places_[outside]);
  outer_.emplace(number, value);
  return value;
}

Ids FragmentReader::operands(const BytecodeOp &op) {
  if (op.operands.size() > most_operands)
    throw Unsupported("an op has too many operands");
  Ids out;
  for (uint64_t number : op.operands)
    out.push_back(use(number));
  return out;
}

Copy FragmentReader::copied(uint32_t from, uint32_t to) {
  if (type(from) != type(to))
    throw Unsupported("a region gives a value of another type than its op");
  read(from);
  read(to);
  return {values_[from].root, values_[to].root, type(from).bytes()};
}

Ids FragmentReader::region(Cursor &cursor, const Ids *arguments, Steps &into) {
  if (cursor.varint() != 1)
    throw Unsupported("a region has not one block");
  if (++depth_ > most_depth)
    throw Unsupported("regions lie too deep in each other");
  scopes_.enter_region(cursor.varint());
  uint64_t header = cursor.varint(), count = header & 1 ? cursor.count() : 0;
  if (arguments && arguments->size() != count)
    throw Unsupported("a region has not as many arguments as its op has values");
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t index = cursor.varint();
    if (index & 1)
      cursor.varint(); // the location
    Type stated = type_of(shared_.bytecode, index >> 1);
    if (!arguments) {
      body.arguments.push_back(stated);
      define(argument(std::move(stated)));
    } else {
      if (type((*arguments)[i]) != stated)
        throw Unsupported("a region has an argument of another type than its op");
      define((*arguments)[i]);
    }
  }
  if ((header & 1) && cursor.byte())
    bytecode::skip_use_orders(cursor, count);
  returned_.clear();
  for (uint64_t left = header >> 1; left > 0; --left)
    op(cursor, into);
  scopes_.leave_region();
  --depth_;
  return std::move(returned_);
}

Ids FragmentReader::function(Cursor cursor, const Ids &arguments, Steps &into) {
  read_op(shared_.bytecode, cursor);
  if (cursor.varint() != 3) // one region, which is isolated
    throw Unsupported("a function has no body");
  Cursor section(cursor.section().second);
  scopes_.enter_isolated();
  Ids results = region(section, &arguments, into);
  scopes_.leave_isolated();
  return results;
}

std::vector<Type> FragmentReader::types_of_function(Cursor cursor) {
  read_op(shared_.bytecode, cursor);
  if (cursor.varint() != 3)
    throw Unsupported("a function has no body");
  Cursor section(cursor.section().second);
  if (section.varint() != 1)
    throw Unsupported("a region has not one block");
  section.varint();
  std::vector<Type> out;
  if (uint64_t header = section.varint(); header & 1)
    for (uint64_t left = section.count(); left > 0; --left) {
      uint64_t index = section.varint();
      if (index & 1)
        section.varint();
      out.push_back(type_of(shared_.bytecode, index >> 1));
    }
  return out;
}

void FragmentReader::op(Cursor &cursor, Steps &into) {
  BytecodeOp op = read_op(shared_.bytecode, cursor);
  if (++shared_.op_count > most_ops)
    throw Unsupported("the program has too many ops");
  std::string_view found = name(op);
  ++time_;
  if (found == "while")
    return loop(cursor, op, into);
  if (found == "case" || found == "if")
    return branches(cursor, op, into);
  if ((op.parts & bytecode::has_regions) && !has_bodies(found))
    throw Unsupported("an op has regions that are compiled only");
  if (found == "constant")
    return constant(op);
  if (found == "return") {
    returned_ = operands(op);
    return;
  }
  if (found == "call")
    return call(op, "callee", into);
  if (found == "composite")
    return call(op, "decomposition", into);
  if ((found == "reshape" || found == "optimization_barrier") && op.results.size() == op.operands.size()) {
    Ids given = operands(op);
    for (size_t i = 0; i < given.size(); ++i)
      define(alias(given[i], type_of(shared_.bytecode, op.results[i])));
    return;
  }
  kernel(cursor, op, into);
}

void FragmentReader::constant(const BytecodeOp &op) {
  if (!op.properties || op.results.size() != 1)
    throw Unsupported("a constant has no value");
  uint64_t index = Cursor(at(shared_.bytecode.properties, *op.properties)).varint();
  Type type = type_of(shared_.bytecode, op.results[0]);
  bytecode::ConstantData data = shared_.elements.constant(index);
  auto bytes = static_cast<size_t>(type.bytes()), width = static_cast<size_t>(type.element_bytes());
  bool is_boolean = type.dtype == DType::i1;
  int64_t stated = 1;
  for (int64_t size : data.type.numbers)
    stated *= size;
  if (stated != type.count() || data.element_bits != (is_boolean ? 1 : info(type.dtype).bits))
    throw Unsupported("a constant has another type than its value");
  shared_.constant_bytes += type.bytes();
  shared_.work_left -= type.bytes() / constant_bytes_of_work;
  if (shared_.constant_bytes > most_constant_bytes || shared_.work_left < 0)
    throw Unsupported("the program has too many constants");
  auto elements = std::make_unique<char[]>(std::max<size_t>(bytes, 1));
  for (size_t i = 0; is_boolean && i < bytes; ++i)
    elements[i] = data.is_splat ? data.bytes[0] & 1 : (static_cast<uint8_t>(data.bytes[i / 8]) >> (i % 8)) & 1;
  for (size_t i = 0; !is_boolean && data.is_splat && i < bytes; i += width)
    std::memcpy(&elements[i], data.bytes.data(), width);
  if (!is_boolean && !data.is_splat)
    std::memcpy(elements.get(), data.bytes.data(), bytes);
  define(add(std::move(type), {Place::constant, 0, elements.get()}));
  shared_.constants.push_back(std::move(elements));
}

/// A function is read where it is called: its arguments are the caller's values, and its results are the caller's.
void FragmentReader::call(const BytecodeOp &op, std::string_view attribute, Steps &into) {
  std::string_view callee = text_of(attributes_of(shared_.bytecode, op), attribute);
  auto found = shared_.functions.find(callee);
  if (found == shared_.functions.end())
    throw Unsupported("a function is called that is not there");
  Ids given = operands(op);
  Ids results = function(found->second.op, given, into);
  if (results.size() != op.results.size())
    throw Unsupported("a function returns another number of values than its caller takes");
  for (size_t i = 0; i < results.size(); ++i) {
    if (type(results[i]) != type_of(shared_.bytecode, op.results[i]))
      throw Unsupported("a function returns a value of another type than its caller takes");
    define(results[i]);
  }
}

void FragmentReader::loop(Cursor &cursor, const BytecodeOp &op, Steps &into) {
  if (around_ || cursor.varint() != 2 << 1)
    throw Unsupported("a loop in the body of an op");
  may_stop_ = true;
  auto step = std::make_unique<WhileStep>();
  Ids given = operands(op), carried;
  ++time_;
  for (uint32_t value : given) {
    carried.push_back(add(type(value), {}));
    step->carried.push_back(copied(value, carried.back()));
  }
  loops_.emplace_back();
  ++conditions_;
  Ids holds = region(cursor, &carried, step->condition);
  if (holds.size() != 1 || type(holds[0]) != Type{DType::i1, {}})
    throw Unsupported("the condition of a loop is not a boolean");
  step->holds = values_[holds[0]].root;
  read(holds[0]);
  Ids next = region(cursor, &carried, step->body);
  ++time_;
  if (next.size() != carried.size())
    throw Unsupported("a loop has not as many values as it began with");
  for (size_t i = 0; i < next.size(); ++i) {
    uint32_t root = values_[next[i]].root;
    if (root == carried[i])
      continue;
    uint32_t from = next[i];
    if (std::ranges::find(carried, root) != carried.end()) {
      from = add(type(next[i]), {});
      step->saved.push_back(copied(next[i], from));
    }
    step->next.push_back(copied(from, carried[i]));
  }
  --conditions_;
  Ids outside = std::move(loops_.back());
  loops_.pop_back();
  for (uint32_t value : outside)
    values_[value].end = time_;
  for (uint32_t value : carried)
    read(value);
  if (op.results.size() != carried.size())
    throw Unsupported("a loop has not as many results as values");
  for (uint32_t value : carried)
    define(value);
  into.push_back(std::move(step));
}

void FragmentReader::branches(Cursor &cursor, const BytecodeOp &op, Steps &into) {
  uint64_t header = cursor.varint(), count = header >> 1;
  Ids given = operands(op), none, results;
  if (around_ || (header & 1) || given.size() != 1 || count == 0 || count > most_operands)
    throw Unsupported("branches that are not as they should be");
  may_stop_ = true;
  auto step = std::make_unique<BranchStep>();
  step->is_boolean = name(op) == "if";
  if (type(given[0]) != Type{step->is_boolean ? DType::i1 : DType::i32, {}} || (step->is_boolean && count != 2))
    throw Unsupported("branches that are not as they should be");
  step->index = values_[given[0]].root;
  for (uint64_t index : op.results)
    results.push_back(add(type_of(shared_.bytecode, index), {}));
  ++conditions_;
  for (; count > 0; --count) {
    BranchStep::Branch &branch = step->branches.emplace_back();
    Ids returned = region(cursor, &none, branch.steps);
    ++time_;
    if (returned.size() != results.size())
      throw Unsupported("a branch gives another number of values than its op");
    for (size_t i = 0; i < results.size(); ++i)
      branch.results.push_back(copied(returned[i], results[i]));
  }
  --conditions_;
  for (uint32_t value : results)
    define(value);
  into.push_back(std::move(step));
}

std::vector<Body> FragmentReader::bodies(Cursor &cursor) {
  std::vector<Body> out;
  uint64_t header = cursor.varint();
  bool is_isolated = header & 1; // it counts its values from 0
  Cursor section(is_isolated ? cursor.section().second : std::string_view());
  for (uint64_t left = header >> 1; left > 0; --left) {
    FragmentReader reader(*this, is_isolated);
    Ids results = reader.region(is_isolated ? section : cursor, nullptr, reader.steps);
    for (uint32_t value : results)
      reader.body.results.push_back(reader.type(value));
    auto fragment = std::make_shared<const Fragment>(reader.finish(results));
    if (fragment->memory_bytes > most_body_bytes)
      throw Unsupported("the body of an op has too many values");
    reader.body.run = [fragment](Inputs inputs, Outputs outputs) {
      alignas(64) char memory[most_body_bytes];
      fragment->run(inputs, outputs, memory, any_work);
    };
    out.push_back(std::move(reader.body));
  }
  return out;
}

void FragmentReader::kernel(Cursor &cursor, const BytecodeOp &read, Steps &into) {
  Op op;
  op.name = name(read);
  Ids given = operands(read);
  for (uint32_t value : given)
    op.operands.push_back(type(value));
  for (uint64_t index : read.results)
    op.results.push_back(type_of(shared_.bytecode, index));
  op.attributes = attributes_of(shared_.bytecode, read);
  if (read.parts & bytecode::has_regions)
    op.bodies = bodies(cursor);
  auto step = std::make_unique<KernelStep>();
  step->work = work_of(op);
  body.work += step->work;
  if (conditions_ == 0 && !around_ && (shared_.work_left -= step->work) < 0)
    throw Unsupported("the program has more work than is interpreted");
  for (uint32_t value : given)
    step->inputs.push_back(values_[value].root);
  for (const Type &type : op.results) {
    step->outputs.push_back(add(type, {}));
    define(step->outputs.back());
  }
  try {
    step->kernel = kernel_of(op);
  } catch (const Unsupported &reason) {
    if (conditions_ == 0 || around_)
      throw Unsupported(std::string(op.name) + ": " + reason.what());
    into.push_back(std::make_unique<UnsupportedStep>(std::string(op.name) + ": " + reason.what()));
    return;
  }
  bool are_arguments = std::ranges::all_of(given, [&](uint32_t value) { return place(value) == Place::argument; });
  body.only_op = around_ && steps.empty() && are_arguments ? op.name : std::string_view();
  body.only_operands.assign(step->inputs.begin(), step->inputs.end());
  into.push_back(std::move(step));
}

Fragment FragmentReader::finish(const Ids &results) {
  ++time_;
  Fragment out;
  std::vector<Lifetime> lifetimes;
  for (uint32_t value : results) {
    read(value);
    out.results.push_back(values_[value].root);
    out.result_bytes.push_back(type(value).bytes());
  }
  bool is_last_result = results.size() == 1 && !steps.empty() && place(results[0]) == Place::memory;
  if (steps.size() != 1 || !is_last_result)
    body.only_op = {};
  for (uint32_t value = 0; value < values_.size(); ++value)
    if (places_[value].kind == Place::memory && values_[value].root == value)
      lifetimes.push_back({value, type(value).bytes(), values_[value].begin, values_[value].end});
  out.memory_bytes = place_values(std::move(lifetimes), places_);
  out.places = places_;
  out.steps = std::move(steps);
  return out;
}

} // namespace disc::interpreter
