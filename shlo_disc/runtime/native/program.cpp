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
  for (const SymbolSpec &symbol : symbols)
    validate_symbol(symbol, arguments);
  validate_segments();
  for (const ConstantSpec &constant : constants) {
    bool inside = constant.offset >= 0 && constant.bytes >= 0 && constant.offset <= constant_bytes &&
                  constant.bytes <= constant_bytes - constant.offset;
    if (!inside || constant.offset % kConstantAlignment != 0)
      bad_artifact("header: a constant lies outside the constants block or is not aligned");
  }
}

/// Every result is written by one segment, and every plan has words for what it sizes.
void Program::validate_segments() {
  std::vector<int> writers(results.size(), 0);
  size_t known = symbols.size();
  for (SegmentSpec &segment : segments) {
    bool is_first = &segment == segments.data();
    if (is_first && segment.symbols_read != 0)
      bad_artifact("header: the first segment reads sizes from data");
    known += segment.symbols_read;
    segment.symbols = known;
    segment.result_word = 1 + (is_first ? argument_dims : 0);
    size_t result_dims = 0;
    for (size_t leaf : segment.results) {
      if (leaf >= results.size() || writers[leaf]++ != 0)
        bad_artifact("header: 'results_written' names a result that does not exist, or twice");
      result_dims += results[leaf].shape.size();
    }
    if (known > kMostPlanWords || segment.plan_words < segment.result_word + result_dims ||
        segment.plan_words > kMostPlanWords)
      bad_artifact("header: plan_words does not fit the arguments and results");
    for (const CheckSpec &check : segment.checks)
      for (size_t operand : check.operands)
        if (operand >= segment.plan_words)
          bad_artifact("header: a check's operand lies outside the plan");
  }
  for (int count : writers)
    if (count == 0)
      bad_artifact("header: a result is written by no segment");
}

} // namespace disc
