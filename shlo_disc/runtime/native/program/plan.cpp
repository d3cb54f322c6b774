// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan.h"

#include "core/error.h"

#include <algorithm>
#include <limits>

namespace disc {

Planner::Planner(const Program &program, size_t segment, EvaluatePlan evaluate, int64_t memo_bytes)
    : program_(program), segment_(program.segments[segment]), is_first_(segment == 0),
      evaluate_(std::move(evaluate)), memo_(memo_bytes) {
  std::vector<size_t> first_dim;
  size_t dims = 0;
  for (const ArraySpec &argument : program.arguments) {
    first_dim.push_back(dims);
    dims += argument.shape.size();
  }
  for (const SymbolSpec &symbol : program.symbols)
    symbol_dim_.push_back(first_dim[symbol.argument] + symbol.dim);
}

std::shared_ptr<const Plan> Planner::plan(Dims dims) const {
  constexpr size_t inline_symbols = 16;
  int64_t buffer[inline_symbols];
  std::vector<int64_t> heap;
  size_t count = program_.symbols.size();
  if (count > inline_symbols)
    heap.resize(count);
  std::span<int64_t> values(count > inline_symbols ? heap.data() : buffer, count);
  solve(dims, values);
  std::shared_ptr<const Plan> plan = memo_.find(values);
  if (!plan)
    plan = evaluate(values, dims);
  check_dims(plan->words.data() + 1, dims, values);
  return plan;
}

std::shared_ptr<const Plan> Planner::plan_for(std::span<const int64_t> symbols) const {
  if (auto plan = memo_.find(symbols))
    return plan;
  return evaluate(symbols, {});
}

void Planner::solve(Dims dims, std::span<int64_t> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t difference = difference_of(dims, values, i), scale = program_.symbols[i].scale;
    if (scale == -1 && difference == std::numeric_limits<int64_t>::min())
      fail_overflow(program_, dims, program_.symbols[i]);
    values[i] = scale == 1 ? difference : difference / scale;
  }
  // Only after all are solved: the message names the others.
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t scale = program_.symbols[i].scale;
    if (scale == 1 || scale == -1)
      continue;
    int64_t difference = difference_of(dims, values, i);
    if (difference % scale == 0)
      continue;
    check_least(values, i, dims);
    fail_division(program_, dims, values, i, difference);
  }
}

/// A symbol that is less than any may be is a better explanation than what fails because of it, as in jax.export.
void Planner::check_least(std::span<const int64_t> values, size_t end, Dims dims) const {
  for (size_t i = 0; i < end; ++i) {
    int64_t least = std::min<int64_t>(program_.symbols[i].minimum, 1);
    if (values[i] < least)
      fail_range(program_, dims, values, i, ">= " + std::to_string(least));
  }
}

/// What is `scale` times the value of a symbol; those before it have their values.
int64_t Planner::difference_of(Dims dims, std::span<const int64_t> values, size_t index) const {
  const SymbolSpec &symbol = program_.symbols[index];
  int64_t difference = 0;
  bool fits = !__builtin_sub_overflow(dims[symbol_dim_[index]], symbol.offset, &difference);
  if (fits && !symbol.less.empty()) {
    std::optional<int64_t> less = value_of(symbol.less, dims, values);
    fits = less && !__builtin_sub_overflow(difference, *less, &difference);
  }
  if (!fits)
    fail_overflow(program_, dims, symbol);
  return difference;
}

std::shared_ptr<const Plan> Planner::evaluate(std::span<const int64_t> values, Dims dims) const {
  auto plan = std::make_shared<Plan>();
  plan->symbols.assign(values.begin(), values.end());
  plan->words.assign(segment_.plan_words, -1);
  int64_t code = evaluate_(plan->symbols.data(), plan->words.data());
  if (code != 0)
    explain_refusal(values, dims, plan->words, code);
  if (is_first_)
    check_ranges(values, dims);
  fill_sizes(*plan);
  memo_.insert(plan);
  return plan;
}

/// A wrong dimension is a better explanation than a constraint that fails because of it, so the sizes that the plan
/// did compute are compared first, as jax.export does.
void Planner::explain_refusal(std::span<const int64_t> values, Dims dims, std::span<const int64_t> words,
                              int64_t code) const {
  bool known = code > 0 && static_cast<size_t>(code) <= segment_.checks.size();
  if (!known)
    throw Error(ErrorKind::state, "the compiled plan returned an unknown code " + std::to_string(code));
  const CheckSpec &check = segment_.checks[static_cast<size_t>(code) - 1];
  if (check.kind != "min" && check.kind != "divisor" && !dims.empty()) {
    for (size_t i = 0; i < program_.argument_dims; ++i)
      if (words[1 + i] >= 0 && words[1 + i] != dims[i])
        fail_inconsistent(program_, dims, values, i, words[1 + i]);
  }
  fail_check(program_, dims, values, check, words);
}

/// The compiled plan checks ranges with better words; this holds even when a header claims more than its plan checks.
void Planner::check_ranges(std::span<const int64_t> values, Dims dims) const {
  for (size_t i = 0; i < values.size(); ++i) {
    const SymbolSpec &symbol = program_.symbols[i];
    if (values[i] < symbol.minimum)
      fail_range(program_, dims, values, i, ">= " + std::to_string(symbol.minimum));
    if (symbol.maximum && values[i] > *symbol.maximum)
      fail_range(program_, dims, values, i, "<= " + std::to_string(*symbol.maximum));
  }
}

void Planner::check_dims(const int64_t *expected, Dims dims, std::span<const int64_t> values) const {
  if (std::equal(dims.begin(), dims.end(), expected))
    return;
  size_t wrong = static_cast<size_t>(std::mismatch(dims.begin(), dims.end(), expected).first - dims.begin());
  fail_inconsistent(program_, dims, values, wrong, expected[wrong]);
}

/// Bytes of every result and of the arena; refuses sizes that no buffer can have.
void Planner::fill_sizes(Plan &plan) const {
  plan.arena_bytes = plan.words[0];
  if (plan.arena_bytes < 0)
    throw Error(ErrorKind::shape, "The program's temporary memory does not fit 64 bits at this shape.");
  const int64_t *dim = plan.words.data() + segment_.result_word;
  for (size_t leaf : segment_.results) {
    const ArraySpec &result = program_.results[leaf];
    int64_t bytes = info(result.dtype).size;
    bool overflow = false;
    bool empty = false;
    for (size_t i = 0; i < result.shape.size(); ++i, ++dim) {
      if (result.shape[i].size >= 0 && result.shape[i].size != *dim)
        bad_artifact("header: the size of dimension " + std::to_string(i) + " of " + result.path + " is " +
                     result.shape[i].text + ", and the program makes " + std::to_string(*dim));
      if (*dim < 0)
        throw Error(ErrorKind::shape, "The size of dimension " + std::to_string(i) + " of " + result.path +
                                          " is negative (" + std::to_string(*dim) + ") at this shape.");
      empty |= *dim == 0;
      overflow |= __builtin_mul_overflow(bytes, *dim, &bytes);
    }
    if (overflow && !empty)
      throw Error(ErrorKind::shape, "The bytes of " + result.path + " " + result.shape_text() +
                                        " do not fit 64 bits at this shape.");
    plan.result_bytes.push_back(empty ? 0 : bytes);
  }
}

} // namespace disc
