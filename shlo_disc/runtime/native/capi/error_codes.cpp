// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "error_codes.h"

#include "core/words.h"

#include <algorithm>
#include <ranges>

namespace disc::capi {

namespace {

/// A row of CODES in errors.py, for kinds of the C API. words: phrases separated by |; one with ^ begins the text, one
/// between \b is a whole word.
struct Row {
  const char *code;
  std::string_view kind, words;
};

constexpr Row kRows[] = {
    {"DISC-S101", "ShapeError", R"(^Rank mismatch)"},
    {"DISC-S102", "ShapeError", R"(^Shape mismatch)"},
    {"DISC-S103", "ShapeError", R"(symbolic shape constraint|^the sizes do not satisfy)"},
    {"DISC-S104", "ShapeError", R"(polymorphic shapes spec|The program takes|The program was exported)"},
    {"DISC-S105", "ShapeError", R"(64 bits)"},
    {"DISC-S100", "ShapeError", R"()"},
    {"DISC-T101", "ArgumentTypeError", R"(^Dtype mismatch)"},
    {"DISC-T102", "ArgumentTypeError", R"(pytree structure|other structure|; the (call (lacks|gives)|program was exported for))"},
    {"DISC-T103", "ArgumentTypeError", R"(^the static argument)"},
    {"DISC-T100", "ArgumentTypeError", R"()"},
    {"DISC-M101", "AllocationError", R"()"},
    {"DISC-X101", "CustomCallError", R"()"},
    {"DISC-D101", "DeviceError", R"()"},
    {"DISC-A101", "ArtifactError", R"(native code from outside)"},
    {"DISC-A102", "ArtifactError", R"(^artifact format|^header format|\bversion\b)"},
    {"DISC-A103", "ArtifactError", R"(made for)"},
    {"DISC-A104", "ArtifactError", R"(not registered in this process)"},
    {"DISC-A105", "ArtifactError", R"(has a node of type)"},
    {"DISC-A106", "ArtifactError", R"(which no other process has)"},
    {"DISC-A107", "ArtifactError", R"(the program calls LAPACK)"},
    {"DISC-A100", "ArtifactError", R"()"},
    {"DISC-V101", "ValueError", R"(depend on data)"},
    {"DISC-V100", "ValueError", R"()"},
};

bool has_phrase(std::string_view text, std::string_view phrase) {
  constexpr std::string_view edge = "\\b";
  if (phrase.starts_with('^'))
    return text.starts_with(phrase.substr(1));
  if (phrase.starts_with(edge))
    return has_word(text, phrase.substr(edge.size(), phrase.size() - 2 * edge.size()));
  return text.find(phrase) != std::string_view::npos;
}

bool has_any(std::string_view text, std::string_view words) {
  if (words.empty())
    return true;
  return std::ranges::any_of(std::views::split(words, '|'), [&](auto part) {
    return has_phrase(text, std::string_view(part.begin(), part.end()));
  });
}

} // namespace

const char *error_code(std::string_view kind, std::string_view text) {
  auto row = std::ranges::find_if(kRows, [&](const Row &row) { return row.kind == kind && has_any(text, row.words); });
  return row != std::end(kRows) ? row->code : "";
}

} // namespace disc::capi
