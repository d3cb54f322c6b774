// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bfloat16: the upper half of a float.
#pragma once

#include <bit>
#include <cstdint>

namespace disc {

/// To the nearest, and to the even one of two; NaNs stay NaNs.
__attribute__((always_inline)) inline uint16_t to_bf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(value != value ? bits >> 16 | 0x40 : rounded);
}

__attribute__((always_inline)) inline float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

} // namespace disc
