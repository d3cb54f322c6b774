// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.h"

#include "core/error.h"
#include "kernels/gemm_formats.h"
#include "kernels/packing.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>
#include <tuple>

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
  const DimSpec &dim = arguments[symbol.argument].shape[symbol.dim];
  if (dim.size >= 0)
    bad_artifact("header: symbol '" + symbol.name + "' is solved from a size that is a number");
  if (symbol.scale == 0)
    bad_artifact("header: symbol '" + symbol.name + "' has scale 0");
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// The names in an expression of sizes, functions among them.
std::vector<std::string_view> names_in(std::string_view text) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    while (i < text.size() && is_part_of_name(text[i]))
      ++i;
    if (i > begin && std::isdigit(static_cast<unsigned char>(text[begin])) == 0)
      names.push_back(text.substr(begin, i - begin));
    i += i == begin;
  }
  return names;
}

void validate_dims(const ArraySpec &array, const std::set<std::string_view> &symbols) {
  static const std::set<std::string_view> functions{"floordiv", "mod", "max", "min"};
  for (const DimSpec &dim : array.shape)
    for (std::string_view name : names_in(dim.text))
      if (!symbols.contains(name) && !functions.contains(name))
        bad_artifact("header: the size '" + dim.text + "' of " + array.path + " has the symbol '" + std::string(name) +
                     "', which nothing tells");
}

int64_t aligned(int64_t bytes) { return (bytes + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment; }

/// A symbol may be solved by means of those before it.
void validate_steps(const SymbolSpec &symbol, size_t number) {
  bool is_right = symbol.less.empty() || is_well_formed(symbol.less);
  for (const SizeStep &step : symbol.less)
    is_right = is_right && (step.operation != SizeOperation::symbol ||
                            (step.value >= 0 && static_cast<size_t>(step.value) < number));
  if (!is_right)
    bad_artifact("header: symbol '" + symbol.name + "' is solved from what is no size");
}

constexpr int64_t kMostPacked = int64_t{1} << 40; // elements along k or n, and the strides
constexpr __int128 kMostMade = __int128{1} << 44; // elements of a form that an artifact has

/// Whether an artifact has a packed form instead of what it is made from.
bool is_made(const Program &program, const PackSpec &pack) {
  return program.is_prepacked && pack.buffer >= program.arguments.size() &&
         std::ranges::find(program.packed_only, pack.buffer) != program.packed_only.end();
}

/// Bytes of the array that a packed form is made from.
int64_t source_bytes(const Program &program, const PackSpec &pack) {
  if (pack.buffer >= program.arguments.size())
    return program.constants[pack.buffer - program.arguments.size() - program.results.size()].bytes;
  const ArraySpec &array = program.arguments[pack.buffer];
  __int128 bytes = array.dtype == pack.dtype ? info(array.dtype).size : 0;
  for (const DimSpec &dim : array.shape)
    bytes = dim.size < 0 || bytes > (__int128{1} << 60) ? 0 : bytes * dim.size;
  return static_cast<int64_t>(bytes);
}

} // namespace

int64_t PackSpec::bytes() const {
  const gemm::Format &form = gemm::format_of(format);
  return packed_words(1, form.words(k), n, columns) * form.word_bytes;
}

int64_t PackSpec::source_bytes() const {
  return ((k - 1) * k_stride + (n - 1) * n_stride + 1) * info(dtype).size;
}

bool PackSpec::is_same_form(const PackSpec &other) const {
  auto fields = [](const PackSpec &s) {
    return std::tie(s.dtype, s.format, s.k, s.n, s.k_stride, s.n_stride, s.columns);
  };
  return fields(*this) == fields(other);
}

std::string ArraySpec::shape_text() const {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + shape[i].text;
  return text + (shape.size() == 1 ? ",)" : ")");
}

void Program::validate(int64_t constant_bytes) {
  argument_dims = count_dims(arguments);
  for (size_t i = 0; i < symbols.size(); ++i) {
    validate_symbol(symbols[i], arguments);
    validate_steps(symbols[i], i);
  }
  validate_segments();
  validate_sizes();
  for (const ConstantSpec &constant : constants) {
    bool inside = constant.offset >= 0 && constant.bytes >= 0 && constant.offset <= constant_bytes &&
                  constant.bytes <= constant_bytes - constant.offset;
    if (!inside || constant.offset % kConstantAlignment != 0)
      bad_artifact("header: a constant lies outside the constants block or is not aligned");
  }
  validate_packs();
}

/// Sizes are expressions of symbols that are solved from the arguments or, those of results, read from data.
void Program::validate_sizes() const {
  std::set<std::string_view> known;
  auto declare = [&](const std::string &name) {
    if (!known.insert(name).second)
      bad_artifact("header: there are two symbols '" + name + "'");
  };
  for (const SymbolSpec &symbol : symbols)
    declare(symbol.name);
  for (const ArraySpec &argument : arguments)
    validate_dims(argument, known);
  for (const SegmentSpec &segment : segments)
    for (const std::string &name : segment.symbols_read)
      declare(name);
  for (const ArraySpec &result : results)
    validate_dims(result, known);
}

/// Constants follow each other as compiled code and packed artifacts have them; those that are packed only are empty.
void Program::check_digest(std::string_view expected, int64_t constant_bytes) const {
  int64_t next = 0;
  bool are_in_place = true;
  for (const ConstantSpec &constant : constants) {
    are_in_place &= constant.bytes == 0 || constant.offset == next;
    if (constant.bytes > 0)
      next = aligned(constant.offset + constant.bytes);
  }
  bool is_same = expected.size() == digest.size() && std::memcmp(expected.data(), digest.data(), digest.size()) == 0;
  if (!is_same || !are_in_place || next != aligned(constant_bytes))
    bad_artifact("header: it is not the one that the program's code was compiled with");
}

/// Packed forms are made from arrays of static size, and read nothing beyond them.
void Program::validate_packs() const {
  size_t buffers = arguments.size() + results.size() + constants.size();
  for (const PackSpec &pack : packs) {
    bool is_source = pack.buffer < arguments.size() ||
                     (pack.buffer >= arguments.size() + results.size() && pack.buffer < buffers);
    if (!is_source)
      bad_artifact("header: a packed form is of something else than an argument or a constant");
    if (pack.format < 0 || pack.format >= gemm::kFormats ||
        gemm::format_of(pack.format).element_bytes != info(pack.dtype).size)
      bad_artifact("header: a packed form has a format that is not one of its element type");
    for (int64_t number : {pack.k, pack.n, pack.k_stride, pack.n_stride, pack.columns})
      if (number < 1 || number > kMostPacked)
        bad_artifact("header: a packed form has a size or stride out of range");
    __int128 last = static_cast<__int128>(pack.k - 1) * pack.k_stride + static_cast<__int128>(pack.n - 1) * pack.n_stride;
    bool is_too_large = is_made(*this, pack) ? static_cast<__int128>(pack.k) * (pack.n + pack.columns) > kMostMade
                                             : (last + 1) * info(pack.dtype).size > source_bytes(*this, pack);
    if (pack.columns > 4096 || is_too_large)
      bad_artifact("header: a packed form reads beyond its array");
  }
  for (size_t buffer : packed_only)
    if (buffer >= buffers)
      bad_artifact("header: 'packed_only' names a buffer that does not exist");
}

/// Every result is written by one segment, and every plan has words for what it sizes.
void Program::validate_segments() {
  std::vector<int> writers(results.size(), 0);
  size_t known = symbols.size();
  for (SegmentSpec &segment : segments) {
    bool is_first = &segment == segments.data();
    if (is_first && !segment.symbols_read.empty())
      bad_artifact("header: the first segment reads sizes from data");
    known += segment.symbols_read.size();
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
