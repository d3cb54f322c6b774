// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.h"

#include "error.h"

namespace disc {

namespace {

constexpr size_t kMostPlanWords = size_t{1} << 24;
constexpr int64_t kConstantAlignment = 64;

size_t count_dims(const std::vector<ArraySpec> &arrays) {
  size_t dims = 0;
  for (const ArraySpec &array : arrays)
    dims += array.shape.size();
  return dims;
}

void validate_symbol(const SymbolSpec &symbol, const std::vector<ArraySpec> &arguments) {
  if (symbol.argument >= arguments.size() || symbol.dim >= arguments[symbol.argument].shape.size())
    bad_artifact("header: symbol '" + symbol.name + "' is solved from a dimension that does not exist");
  if (symbol.scale == 0)
    bad_artifact("header: symbol '" + symbol.name + "' has scale 0");
}

} // namespace

std::string ArraySpec::shape_text() const {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + shape[i].text;
  return text + (shape.size() == 1 ? ",)" : ")");
}

void Program::validate(int64_t constant_bytes) {
  argument_dims = count_dims(arguments);
  result_dims = count_dims(results);
  for (const SymbolSpec &symbol : symbols)
    validate_symbol(symbol, arguments);
  if (plan_words < 1 + argument_dims + result_dims || plan_words > kMostPlanWords)
    bad_artifact("header: plan_words does not fit the arguments and results");
  for (const CheckSpec &check : checks)
    for (size_t operand : check.operands)
      if (operand >= plan_words)
        bad_artifact("header: a check's operand lies outside the plan");
  for (const ConstantSpec &constant : constants) {
    bool inside = constant.offset >= 0 && constant.bytes >= 0 && constant.offset <= constant_bytes &&
                  constant.bytes <= constant_bytes - constant.offset;
    if (!inside || constant.offset % kConstantAlignment != 0)
      bad_artifact("header: a constant lies outside the constants block or is not aligned");
  }
}

} // namespace disc
