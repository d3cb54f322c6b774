// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_messages.h"

#include "core/error.h"

#include <algorithm>
#include <cctype>

namespace disc {

namespace {

constexpr const char *kSpecification = "Input shapes do not match the polymorphic shapes specification. ";
constexpr const char *kConstraint = "Input shapes do not match the symbolic shape constraint ";
constexpr const char *kQuoted = "Using the following polymorphic shapes specifications:";
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

/// What the program takes, and the symbols solved from dimensions before `end`, as C says it.
std::string taken(const Program &program, Dims dims, Values values, Position end) {
  std::string arguments, symbols;
  for (const ArraySpec &argument : program.arguments)
    if (is_symbolic(argument))
      arguments += (arguments.empty() ? "" : ", ") + argument.path + " of " + argument.shape_text();
  for (size_t i = 0; i < program.symbols.size() && i < values.size(); ++i) {
    const SymbolSpec &symbol = program.symbols[i];
    if (!dims.empty() && !solved_before(symbol, end))
      continue;
    symbols += (symbols.empty() ? "; here " : ", ") + symbol.name + " = " + std::to_string(values[i]);
    if (!dims.empty()) // else the values were given
      symbols += " (from " + dim_name(program.arguments[symbol.argument], symbol.dim) + ")";
  }
  return arguments.empty() ? "" : ". The program takes " + arguments + symbols;
}

/// The reason for which sizes do not fit: in JAX's words, in those of C, and the argument at fault if there is one.
struct Fault {
  std::string of_jax, in_c;
  const ArraySpec *argument = nullptr;
};

/// Whether the paths of arguments are those of a call in JAX, and not names that a program of another kind has.
bool is_of_jax(const Program &program) {
  return std::ranges::all_of(program.arguments, [](const ArraySpec &argument) {
    return !is_symbolic(argument) || argument.path.starts_with("args[") || argument.path.starts_with("kwargs[");
  });
}

[[noreturn]] void fail(const Program &program, Dims dims, Values values, Position end, const Fault &fault) {
  std::string in_c = fault.in_c + taken(program, dims, values, end), text = in_c;
  if (is_of_jax(program)) {
    // Symbols given directly, without arguments, have no specification to quote.
    bool is_whole = fault.of_jax.find(kQuoted) != std::string::npos || dims.empty();
    text = is_whole ? fault.of_jax
                    : fault.of_jax + specifications(program) + obtained(program, dims, values, end) + kTrailer;
  }
  Error error(ErrorKind::shape, text);
  error.text_in_c = in_c;
  if (fault.argument != nullptr)
    error.argument = fault.argument->path;
  throw error;
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

bool is_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether a name stands in a text, not as a part of a longer one.
bool names(const std::string &text, const std::string &name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || !is_of_a_name(text[at - 1])) && (end == text.size() || !is_of_a_name(text[end])))
      return true;
  }
  return false;
}

/// The symbol that a text names; null where there are several, or none.
const SymbolSpec *only_symbol(const Program &program, const std::string &text) {
  const SymbolSpec *found = nullptr;
  for (const SymbolSpec &symbol : program.symbols)
    if (names(text, symbol.name)) {
      if (found != nullptr)
        return nullptr;
      found = &symbol;
    }
  return found;
}

/// The finding of a check's message, without what JAX says around it.
std::string of_c(std::string text) {
  text.resize(std::min(text.find(kQuoted), text.size()));
  if (text.starts_with(kSpecification))
    text.erase(0, std::string_view(kSpecification).size());
  if (text.starts_with(kConstraint)) {
    text.replace(0, std::string_view(kConstraint).size(), "the sizes do not satisfy ");
    text.resize(std::min(text.find(". Expected"), text.size()));
  }
  while (text.ends_with(' ') || text.ends_with('.'))
    text.pop_back();
  constexpr std::string_view expected = "Expected value ", of = " for dimension variable '";
  size_t name = text.find(of);
  if (text.starts_with(expected) && name != std::string::npos)
    return text.substr(name + of.size(), text.size() - 1 - name - of.size()) + " has to be " +
           text.substr(expected.size(), name - expected.size());
  return text;
}

} // namespace

void fail_division(const Program &program, Dims dims, Values values, size_t index, int64_t difference) {
  const SymbolSpec &symbol = program.symbols[index];
  const ArraySpec &argument = program.arguments[symbol.argument];
  int64_t remainder = difference % symbol.scale;
  if (remainder != 0 && (remainder < 0) != (symbol.scale < 0))
    remainder += symbol.scale; // Python's remainder has the divisor's sign
  std::string of_jax = kSpecification + ("Division had remainder " + std::to_string(remainder)) +
                       " when computing the value of '" + symbol.name + "'.";
  int64_t size = dims.empty() ? 0 : dims[flat_of(program, {symbol.argument, symbol.dim})];
  std::string in_c = dim_name(argument, symbol.dim) + " is " + std::to_string(size) + ", which is no value of " +
                     argument.shape[symbol.dim].text;
  fail(program, dims, values, {symbol.argument, symbol.dim}, {of_jax, in_c, &argument});
}

void fail_overflow(const Program &program, Dims dims, const SymbolSpec &symbol) {
  std::string what = "he value of '" + symbol.name + "' does not fit 64 bits";
  fail(program, dims, {}, {0, 0}, {kSpecification + ("T" + what) + ".", "t" + what});
}

void fail_range(const Program &program, Dims dims, Values values, size_t index, const std::string &expected) {
  const SymbolSpec &symbol = program.symbols[index];
  std::string of_jax = kSpecification + ("Expected value " + expected) + " for dimension variable '" + symbol.name + "'.";
  const ArraySpec *argument = dims.empty() ? nullptr : &program.arguments[symbol.argument];
  std::string in_c = symbol.name + " is " + std::to_string(values[index]) + ", and has to be " + expected;
  fail(program, dims, values, {symbol.argument, symbol.dim + 1}, {of_jax, in_c, argument});
}

void fail_inconsistent(const Program &program, Dims dims, Values values, size_t dim, int64_t expected) {
  Position position = position_of(program, dim);
  const ArraySpec &argument = program.arguments[position.argument];
  const std::string name = dim_name(argument, position.dim), &text = argument.shape[position.dim].text;
  std::string size = std::to_string(dims[dim]), wanted = std::to_string(expected);
  std::string of_jax = kSpecification + ("Found inconsistency between dimension size " + name) + " (= " + size +
                       ") and the specification '" + text + "' (= " + wanted + ").";
  std::string in_c = name + " is " + size + ", and " + text + " is " + wanted;
  fail(program, dims, values, position, {of_jax, in_c, &argument});
}

void fail_check(const Program &program, Dims dims, Values values, const CheckSpec &check,
                std::span<const int64_t> words) {
  std::string message = expand(program, values, check, words);
  std::string in_c = of_c(message);
  if (check.kind == "constraint")
    message += " ";
  const SymbolSpec *symbol = dims.empty() ? nullptr : only_symbol(program, in_c);
  const ArraySpec *argument = symbol == nullptr ? nullptr : &program.arguments[symbol->argument];
  bool has_values = dims.empty() && check.kind == "data"; // the message itself
  fail(program, dims, has_values ? Values{} : values, {program.arguments.size(), 0}, {message, in_c, argument});
}

} // namespace disc
