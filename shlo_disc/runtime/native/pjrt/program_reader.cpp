// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_reader.h"

#include "artifact/sha256.h"
#include "bytecode/ops.h"
#include "op_attributes.h"
#include "bytecode/value_scopes.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <unordered_map>

namespace disc::pjrt {

namespace {

constexpr size_t most_tokens = 64 << 20;
constexpr size_t most_numbers = 16 << 20;
constexpr int most_regions = 128; // in each other, with those of called functions
constexpr std::string_view python_callback = "shlo_disc_python_callback"; // PYTHON_CALLBACK of custom_calls.py

/// What is written of an op before its regions, and its position in pre-order, the function that it calls as an op in it.
struct OpHeader : BytecodeOp {
  uint32_t position = 0;
};

/// A function of the module, and where its op begins.
struct Function {
  std::string_view name;
  Cursor op;
  bool is_private;
  bool is_called = false;
};

class Reader {
public:
  Reader(const Bytecode &bytecode, bool with_places)
      : bytecode_(bytecode), elements_(bytecode), attributes_(bytecode, elements_), values_(bytecode.body.size()),
        with_places_(with_places) {}

  StaticProgram read() {
    Cursor cursor(bytecode_.body);
    tokens_.number(bytecode_.version);
    values_.enter_isolated();
    values_.enter_region(0);
    block(cursor, 0, 0, 0);
    program_.skeleton = tokens_.take();
    return std::move(program_);
  }

private:
  void block(Cursor &cursor, uint32_t owner, uint32_t region, int depth);
  void functions(Cursor &cursor, int depth);
  Function function(Cursor &cursor);
  void called(std::string_view name, int depth);
  void op(Cursor &cursor, int depth, bool is_called = false);
  OpHeader header(Cursor &cursor) const { return {read_op(bytecode_, cursor)}; }
  void begin(OpHeader &op);
  bool is_splat(const OpHeader &op);
  bool calls_python(const OpHeader &op) const;
  void name_function(ProgramConstant &constant);
  ProgramValue used(uint64_t operand);
  bool is_plain(const OpHeader &op);
  bool is_use(uint64_t origin, uint64_t operand, uint64_t result);
  std::string_view properties(uint64_t name, uint64_t index, uint32_t op);
  void attributes(const OpAttributes &read, uint32_t op);
  void constant_value(uint64_t attribute, uint32_t op);
  void operands(const OpHeader &op, const std::vector<ProgramValue> &values);
  void results(const OpHeader &op);
  void block_arguments(Cursor &cursor, uint32_t owner, uint32_t region);
  void regions(Cursor &cursor, uint32_t op, int depth);
  void type(uint64_t index, NumberPlace place);

  void number(int64_t value, const NumberPlace &place) {
    if (program_.numbers.size() == most_numbers || tokens_.size() > most_tokens)
      throw Unreadable("the program is too large");
    program_.numbers.push_back(value);
    if (with_places_)
      program_.places.push_back(place);
  }

  const Bytecode &bytecode_;
  Elements elements_;
  OpAttributeReader attributes_;
  ValueScopes values_;
  bool with_places_;
  StaticProgram program_;
  Tokens tokens_;
  std::vector<Function> functions_;                                  // in the order of the module
  std::vector<OpHeader> splats_;                                     // the constants that values are
  std::unordered_map<std::string_view, size_t> places_of_functions_;
  uint32_t op_count_ = 0;
};

void Reader::type(uint64_t index, NumberPlace place) {
  const Expansion &expansion = elements_.type(index);
  tokens_.append(expansion.tokens);
  for (int64_t value : expansion.numbers) {
    number(value, place);
    ++place.axis;
  }
}

void Reader::block(Cursor &cursor, uint32_t owner, uint32_t region, int depth) {
  uint64_t header = cursor.varint();
  tokens_.number(header & 1);
  if (header & 1)
    block_arguments(cursor, owner, region);
  for (uint64_t left = header >> 1; left > 0; --left)
    op(cursor, depth);
  tokens_.text({}); // where the name of an op would be
}

void Reader::block_arguments(Cursor &cursor, uint32_t owner, uint32_t region) {
  uint64_t count = cursor.count();
  tokens_.number(count);
  bool is_first = program_.last_size == 0;
  program_.first_size = is_first ? program_.numbers.size() : program_.first_size;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t index = cursor.varint();
    if (index & 1)
      cursor.varint(); // the location
    type(index >> 1, {NumberPlace::block_argument, owner, static_cast<uint32_t>(i), 0, region, {}});
    values_.define({values_.new_id(), index >> 1, index >> 1});
  }
  program_.last_size = is_first ? program_.numbers.size() : program_.last_size;
  if (cursor.byte())
    skip_use_orders(cursor, count);
}

/// JAX leaves out a broadcast to another shape of the same rank, and a slice from the start, where the result's shape is
/// the operand's own, which depends on sizes. So these are no ops of the skeleton: each operand tells with which sizes it
/// is used. Along an axis of 1 that is a broadcast, along any other one a prefix; what is both, the first element of
/// several spread out, is an op.
bool Reader::is_plain(const OpHeader &op) {
  std::string_view name = bytecode_.ops[op.name].name;
  bool is_broadcast = name == "broadcast_in_dim_v1", is_slice = name == "slice_v1";
  if ((!is_broadcast && !is_slice) || op.dictionary || !op.properties || op.results.size() != 1 ||
      op.operands.size() != 1 || (op.parts & has_regions))
    return false;
  ProgramValue operand = values_[op.operands[0]];
  std::optional<size_t> rank = elements_.rank(op.results[0]);
  if (!rank || rank != elements_.rank(operand.type))
    return false;
  Cursor cursor(at(bytecode_.properties, *op.properties));
  auto next_is = [&](auto expected) {
    std::optional<std::vector<int64_t>> found = elements_.integers(cursor.varint());
    return found && found->size() == *rank && expected(*found);
  };
  auto all_are = [](int64_t value) {
    return [=](const std::vector<int64_t> &found) {
      return std::ranges::all_of(found, [=](int64_t one) { return one == value; });
    };
  };
  auto in_order = [](const std::vector<int64_t> &found) {
    return std::ranges::equal(found, std::views::iota(int64_t{0}, static_cast<int64_t>(found.size())));
  };
  auto anything = [](const std::vector<int64_t> &) { return true; };
  bool is_whole = is_broadcast ? next_is(in_order) : next_is(anything) && next_is(all_are(0)) && next_is(all_are(1));
  return is_whole && cursor.empty() && is_use(operand.origin, operand.type, op.results[0]);
}

/// Whether a value of the first type, used with the sizes of the second and then with those of the third, is the same as
/// the value used with the third.
bool Reader::is_use(uint64_t origin, uint64_t operand, uint64_t result) {
  std::vector<int64_t> from = elements_.type(origin).numbers, over = elements_.type(operand).numbers;
  const std::vector<int64_t> &to = elements_.type(result).numbers;
  if (from.size() != to.size() || over.size() != to.size())
    return false;
  for (size_t axis = 0; axis < to.size(); ++axis)
    if (from[axis] < 0 || over[axis] < 0 || (from[axis] != 1 && over[axis] == 1 && to[axis] != 1))
      return false;
  return true;
}

/// Gives an op its position.
void Reader::begin(OpHeader &op) {
  op.position = op_count_++;
  if (with_places_) {
    program_.ops.emplace_back(bytecode_.ops[op.name].name);
    program_.starts.push_back(tokens_.size());
  }
  if (tokens_.size() > most_tokens)
    throw Unreadable("the program is too large");
}

/// Whether an op is a constant of equal elements.
bool Reader::is_splat(const OpHeader &op) {
  if (bytecode_.ops[op.name].name != "constant_v1" || op.dictionary || !op.properties || op.results.size() != 1 ||
      !op.operands.empty() || (op.parts & has_regions))
    return false;
  return elements_.constant(Cursor(at(bytecode_.properties, *op.properties)).varint()).is_splat;
}

/// An operand. A splat is read where it is used, for each use by itself: JAX makes one constant of two that are equal,
/// which may depend on sizes.
ProgramValue Reader::used(uint64_t operand) {
  ProgramValue value = values_[operand];
  if (value.constant == 0)
    return value;
  OpHeader op = splats_[value.constant - 1];
  begin(op);
  tokens_.text(bytecode_.ops[op.name].name);
  properties(op.name, *op.properties, op.position);
  type(op.results[0], {NumberPlace::result, op.position, 0, 0, 0, {}});
  return {values_.new_id(), value.type, value.origin};
}

/// Whether the first operand of an op is the number of a function of Python.
bool Reader::calls_python(const OpHeader &op) const {
  if (bytecode_.ops[op.name].name != "custom_call_v1" || !op.properties)
    return false;
  for (Cursor cursor(at(bytecode_.properties, *op.properties)); !cursor.empty();)
    if (elements_.is_text(cursor.varint(), python_callback))
      return true;
  return false;
}

/// Leaves of the number of a function which one of the program's functions it is.
void Reader::name_function(ProgramConstant &constant) {
  if (constant.number_count != 1 || constant.element_bits != 64 || !constant.sizes.empty())
    return;
  int64_t &number = program_.numbers[constant.number];
  auto found = std::ranges::find(program_.functions, number);
  int64_t position = found - program_.functions.begin();
  if (found == program_.functions.end())
    program_.functions.push_back(number);
  number = position;
  constant.names_function = true;
}

void Reader::op(Cursor &cursor, int depth, bool is_called) {
  OpHeader op = header(cursor);
  std::string_view name = bytecode_.ops[op.name].name;
  if (is_splat(op)) {
    splats_.push_back(op);
    values_.define({UINT32_MAX, op.results[0], op.results[0], splats_.size()});
    return;
  }
  std::vector<ProgramValue> given;
  for (uint64_t operand : op.operands) {
    given.push_back(used(operand));
    if (given.size() == 1 && values_[operand].constant != 0 && calls_python(op))
      name_function(program_.constants.back());
  }
  begin(op);
  if (is_plain(op)) {
    values_.define({given[0].id, op.results[0], given[0].origin});
    return;
  }
  tokens_.text(name);
  tokens_.number(op.parts & ~has_use_orders);
  if (op.dictionary)
    attributes(attributes_.discardable(op.name, op.properties, *op.dictionary), op.position);
  std::string_view named;
  if (op.properties && name != "module") // of a module they are its name and its visibility
    named = properties(op.name, *op.properties, op.position);
  operands(op, given);
  results(op);
  if (name == "func_v1") {
    tokens_.text(is_called ? std::string_view() : named);
    if (!(op.parts & has_regions))
      throw Unreadable("a function has no body");
  } else if (!named.empty()) {
    called(named, depth + 1);
  }
  if (op.parts & has_regions)
    regions(cursor, op.position, depth + 1);
}

/// The function that an op calls, as if it were a region of the op. JAX makes one function of two that are the same,
/// which may depend on sizes.
void Reader::called(std::string_view name, int depth) {
  auto found = places_of_functions_.find(name);
  if (found == places_of_functions_.end() || depth > most_regions)
    throw Unreadable("a function is called that is not there, or too many in each other");
  Function &function = functions_[found->second];
  function.is_called = true;
  Cursor cursor = function.op;
  op(cursor, depth, true);
}

/// The module's body: the public functions with all that they call, then the private ones that nothing has called.
void Reader::functions(Cursor &cursor, int depth) {
  uint64_t header = cursor.varint();
  if (header & 1)
    throw Unreadable("a module has arguments");
  for (uint64_t left = header >> 1; left > 0; --left) {
    functions_.push_back(function(cursor));
    if (!places_of_functions_.try_emplace(functions_.back().name, functions_.size() - 1).second)
      throw Unreadable("two functions have one name");
  }
  for (bool is_private : {false, true})
    for (const Function &function : functions_)
      if (function.is_private == is_private && !function.is_called) {
        Cursor start = function.op;
        op(start, depth);
      }
  tokens_.text({}); // where the name of an op would be
}

/// Reads over a function of the module.
Function Reader::function(Cursor &cursor) {
  Cursor start = cursor;
  OpHeader op = header(cursor);
  if (bytecode_.ops[op.name].name != "func_v1" || !op.properties || !(op.parts & has_regions) || cursor.varint() != 3)
    throw Unreadable("something in the module is no function");
  cursor.section();
  const OpAttributes &attributes = attributes_.inherent(op.name, *op.properties);
  return {attributes.function, start, attributes.is_private};
}

void Reader::operands(const OpHeader &op, const std::vector<ProgramValue> &values) {
  tokens_.number(values.size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    tokens_.number(values[i].id);
    type(values[i].type, {NumberPlace::operand, op.position, i, 0, 0, {}});
  }
}

void Reader::results(const OpHeader &op) {
  tokens_.number(op.results.size());
  for (uint32_t i = 0; i < op.results.size(); ++i) {
    type(op.results[i], {NumberPlace::result, op.position, i, 0, 0, {}});
    values_.define({values_.new_id(), op.results[i], op.results[i]});
  }
}

void Reader::regions(Cursor &cursor, uint32_t op, int depth) {
  if (depth > most_regions)
    throw Unreadable("regions lie too deep in each other");
  uint64_t header = cursor.varint();
  bool is_isolated = header & 1;
  tokens_.number(header);
  Cursor section(is_isolated ? cursor.section().second : std::string_view());
  Cursor &from = is_isolated ? section : cursor;
  if (is_isolated)
    values_.enter_isolated();
  for (uint64_t i = 0; i < header >> 1; ++i) {
    uint64_t blocks = from.varint();
    tokens_.number(blocks);
    if (blocks > 1)
      throw Unreadable("a region has several blocks");
    if (blocks == 0)
      continue;
    values_.enter_region(from.varint());
    if (op == 0)
      functions(from, depth);
    else
      block(from, op, static_cast<uint32_t>(i), depth);
    values_.leave_region();
  }
  if (is_isolated)
    values_.leave_isolated();
}

/// The function that the op calls or is, if any.
std::string_view Reader::properties(uint64_t name, uint64_t index, uint32_t op) {
  if (bytecode_.ops[name].name == "constant_v1") {
    Cursor cursor(at(bytecode_.properties, index));
    constant_value(cursor.varint(), op);
    if (!cursor.empty())
      throw Unreadable("a constant has more than its value");
    return {};
  }
  const OpAttributes &found = attributes_.inherent(name, index);
  attributes(found, op);
  return found.function;
}

void Reader::attributes(const OpAttributes &read, uint32_t op) {
  tokens_.append(read.tokens);
  for (size_t i = 0; i < read.numbers.size(); ++i) {
    auto [name, place] = read.places[i];
    number(read.numbers[i], {NumberPlace::attribute, op, 0, place, 0, name});
  }
}

/// The bits of a splat in words, or 128 bits of the SHA-256 of all elements, on which processes agree.
std::vector<int64_t> words_of(const ConstantData &constant) {
  std::vector<int64_t> words;
  if (!constant.is_splat) {
    Digest digest = sha256(constant.bytes);
    words.resize(2);
    std::memcpy(words.data(), digest.data(), 2 * sizeof(int64_t));
    return words;
  }
  if (constant.element_bits == 1)
    return {constant.bytes[0] & 1};
  for (size_t place = 0; place < constant.bytes.size(); place += sizeof(int64_t)) {
    int64_t word = 0;
    std::memcpy(&word, constant.bytes.data() + place, std::min(constant.bytes.size() - place, sizeof word));
    words.push_back(word);
  }
  return words;
}

void Reader::constant_value(uint64_t attribute, uint32_t op) {
  ConstantData constant = elements_.constant(attribute);
  tokens_.append(constant.type.tokens);
  tokens_.number(constant.is_splat);
  NumberPlace place{NumberPlace::attribute, op, 0, 0, 0, "value"};
  for (int64_t size : constant.type.numbers) { // equal to those of the result's type, which the program is checked for
    number(size, place);
    ++place.axis;
  }
  std::vector<int64_t> words = words_of(constant);
  program_.constants.push_back({program_.numbers.size(), words.size(), constant.bytes, constant.element_bits,
                                constant.is_splat, std::move(constant.type.numbers)});
  place = {NumberPlace::element, op, 0, 0, 0, {}};
  for (int64_t word : words) {
    number(word, place);
    ++place.axis;
  }
}

} // namespace

StaticProgram read_program(std::string_view bytes, bool with_places) {
  Bytecode bytecode = read_bytecode(bytes);
  return Reader(bytecode, with_places).read();
}

} // namespace disc::pjrt
