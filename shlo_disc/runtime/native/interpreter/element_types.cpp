// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "element_types.h"

namespace disc::interpreter {

uint16_t to_f16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) // NaN
    return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x477FF000) // halfway between the largest f16 and the next power of two, or more
    return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) { // less than 2^-14: neighbours of 0.5 are as far apart as subnormal numbers of f16
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000));
  }
  uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112 << 10)));
}

float from_f16(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
  if (magnitude < 0x400) // subnormal
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
  if (magnitude >= 0x7C00) // infinite, or NaN, which becomes quiet
    return std::bit_cast<float>(sign | 0x7F800000 | magnitude << 13 | (magnitude > 0x7C00 ? 0x400000 : 0));
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112 << 23)));
}

} // namespace disc::interpreter
