// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base64.h"

#include <cstdint>

namespace disc::pjrt {

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

} // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t digit = i < text.size() - padding ? kDigits.find(text[i]) : 0;
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 == 3)
      for (int shift : {16, 8, 0})
        bytes += static_cast<char>(bits >> shift & 0xff);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

} // namespace disc::pjrt
