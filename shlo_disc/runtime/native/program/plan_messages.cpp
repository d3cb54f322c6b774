// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_messages.h"

#include "core/error.h"

#include <algorithm>
#include <cctype>

namespace disc {

namespace {

constexpr const char *kSpecification = "Input shapes do not match the polymorphic shapes specification. ";
constexpr const char *kTrailer =
    ". Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.";

bool is_symbolic(const ArraySpec &argument) {
  return std::ranges::any_of(argument.shape, [](const DimSpec &dim) { return dim.size < 0; });
}

std::string specifications(const Program &program) {
  std::string text;
  for (const ArraySpec &argument : program.arguments)
    if (is_symbolic(argument))
      text += (text.empty() ? "" : ",") + argument.path + ".shape = " + argument.shape_text();
  return " Using the following polymorphic shapes specifications: " + text + ".";
}

std::string dim_name(const ArraySpec &argument, size_t dim) {
  return argument.path + ".shape[" + std::to_string(dim) + "]";
}

struct Position {
  size_t argument;
  size_t dim;
};

Position position_of(const Program &program, size_t flat) {
  size_t argument = 0;
  while (flat >= program.arguments[argument].shape.size())
    flat -= program.arguments[argument++].shape.size();
  return {argument, flat};
}

size_t flat_of(const Program &program, Position position) {
  size_t flat = position.dim;
  for (size_t i = 0; i < position.argument; ++i)
    flat += program.arguments[i].shape.size();
  return flat;
}

bool solved_before(const SymbolSpec &symbol, Position position) {
  return symbol.argument < position.argument || (symbol.argument == position.argument && symbol.dim < position.dim);
}

std::string solution(const SymbolSpec &symbol, const Program &program, Dims dims, int64_t value) {
  const ArraySpec &argument = program.arguments[symbol.argument];
  int64_t size = dims[flat_of(program, {symbol.argument, symbol.dim})];
  return "'" + symbol.name + "' = " + std::to_string(value) + " from specification '" +
         argument.shape[symbol.dim].text + "' for dimension " + dim_name(argument, symbol.dim) +
         " (= " + std::to_string(size) + "), ";
}

/// The symbols solved from dimensions before `end`.
std::string obtained(const Program &program, Dims dims, Values values, Position end) {
  std::string text = " Obtained dimension variables: ";
  for (size_t i = 0; i < program.symbols.size(); ++i)
    if (solved_before(program.symbols[i], end))
      text += solution(program.symbols[i], program, dims, values[i]);
  return text;
}

/// Throws JAX's text; for C without the link to JAX's documentation.
[[noreturn]] void fail_as_jax(const std::string &text) {
  Error error(ErrorKind::shape, text);
  error.text_in_c.resize(std::min(text.find(kTrailer), text.size()));
  if (error.text_in_c.ends_with(", "))
    error.text_in_c.resize(error.text_in_c.size() - 2);
  throw error;
}

[[noreturn]] void fail(const Program &program, Dims dims, Values values, Position end, const std::string &what) {
  // Symbols given directly, without arguments, have no specification to quote.
  if (dims.empty())
    throw Error(ErrorKind::shape, what);
  fail_as_jax(what + specifications(program) + obtained(program, dims, values, end) + kTrailer);
}

std::string replacement(const Program &program, Values values, const CheckSpec &check, std::span<const int64_t> words,
                        const std::string &name) {
  bool number = !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (number && name.size() < 6) {
    size_t operand = std::stoul(name);
    return operand < check.operands.size() ? std::to_string(words[check.operands[operand]]) : "{" + name + "}";
  }
  for (size_t i = 0; i < program.symbols.size(); ++i)
    if (program.symbols[i].name == name)
      return std::to_string(values[i]);
  return "{" + name + "}";
}

std::string expand(const Program &program, Values values, const CheckSpec &check, std::span<const int64_t> words) {
  std::string text;
  const std::string &message = check.message;
  for (size_t i = 0; i < message.size(); ++i) {
    size_t end = message[i] == '{' ? message.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      text += message[i];
      continue;
    }
    text += replacement(program, values, check, words, message.substr(i + 1, end - i - 1));
    i = end;
  }
  return text;
}

} // namespace

void fail_division(const Program &program, Dims dims, Values values, size_t index, int64_t difference) {
  const SymbolSpec &symbol = program.symbols[index];
  int64_t remainder = difference % symbol.scale;
  if (remainder != 0 && (remainder < 0) != (symbol.scale < 0))
    remainder += symbol.scale; // Python's remainder has the divisor's sign
  fail(program, dims, values, {symbol.argument, symbol.dim},
       kSpecification + ("Division had remainder " + std::to_string(remainder)) + " when computing the value of '" +
           symbol.name + "'.");
}

void fail_overflow(const Program &program, Dims dims, const SymbolSpec &symbol) {
  fail(program, dims, {}, {0, 0},
       kSpecification + ("The value of '" + symbol.name) + "' does not fit 64 bits.");
}

void fail_range(const Program &program, Dims dims, Values values, size_t index, const std::string &expected) {
  const SymbolSpec &symbol = program.symbols[index];
  fail(program, dims, values, {symbol.argument, symbol.dim + 1},
       kSpecification + ("Expected value " + expected) + " for dimension variable '" + symbol.name + "'.");
}

void fail_inconsistent(const Program &program, Dims dims, Values values, size_t dim, int64_t expected) {
  Position position = position_of(program, dim);
  const ArraySpec &argument = program.arguments[position.argument];
  fail(program, dims, values, position,
       kSpecification + ("Found inconsistency between dimension size " + dim_name(argument, position.dim)) +
           " (= " + std::to_string(dims[dim]) + ") and the specification '" + argument.shape[position.dim].text +
           "' (= " + std::to_string(expected) + ").");
}

void fail_check(const Program &program, Dims dims, Values values, const CheckSpec &check,
                std::span<const int64_t> words) {
  std::string message = expand(program, values, check, words);
  // A message that already quotes the specifications is complete.
  if (message.find("polymorphic shapes specifications:") != std::string::npos)
    fail_as_jax(message);
  if (check.kind == "constraint")
    message += " ";
  fail(program, dims, values, {program.arguments.size(), 0}, message);
}

} // namespace disc
