// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole words in text: of letters, digits and underscores.
#pragma once

#include <cctype>
#include <string_view>

namespace disc {

inline bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether a text has a word that is not a part of a longer one.
inline bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !is_in_word(text[at - 1])) && (end == text.size() || !is_in_word(text[end])))
      return true;
  }
  return false;
}

} // namespace disc
