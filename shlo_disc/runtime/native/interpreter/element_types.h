// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C++ types of elements. Floats of 16 bits are computed as floats of 32 bits and rounded after each op.
#pragma once

#include "core/bfloat16.h"
#include "op.h"

#include <bit>
#include <complex>
#include <type_traits>

namespace disc::interpreter {

/// To the nearest f16, and to the even one of two; NaNs stay NaNs. And back.
uint16_t to_f16(float value);
float from_f16(uint16_t bits);

struct Bool {
  uint8_t byte = 0;
  Bool() = default;
  Bool(bool value) : byte(value) {}
  operator bool() const { return byte != 0; }
};

struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  Float16(float value) : bits(to_f16(value)) {}
  operator float() const { return from_f16(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) : bits(to_bf16(value)) {}
  operator float() const { return from_bf16(bits); }
};

template <typename T> struct IsComplex : std::false_type {};
template <typename T> struct IsComplex<std::complex<T>> : std::true_type {};
template <typename T> inline constexpr bool is_complex = IsComplex<T>::value;
template <typename T> inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T> inline constexpr bool is_real_float = std::is_floating_point_v<T> || is_half<T>;
template <typename T> inline constexpr bool is_bool = std::is_same_v<T, Bool>;
template <typename T> inline constexpr bool is_int = std::is_integral_v<T>;

/// What an element is computed as.
template <typename T> using Computed = std::conditional_t<is_half<T>, float, std::conditional_t<is_bool<T>, bool, T>>;

/// Calls `body` with an object of the C++ type of a dtype, and returns what it returns. Throws Unsupported for types of
/// less than a byte and floats of 8 bits.
template <typename Function> auto with_type(DType dtype, Function body) {
  switch (dtype) {
  case DType::i1: return body(Bool{});
  case DType::i8: return body(int8_t{});
  case DType::i16: return body(int16_t{});
  case DType::i32: return body(int32_t{});
  case DType::i64: return body(int64_t{});
  case DType::u8: return body(uint8_t{});
  case DType::u16: return body(uint16_t{});
  case DType::u32: return body(uint32_t{});
  case DType::u64: return body(uint64_t{});
  case DType::f16: return body(Float16{});
  case DType::bf16: return body(BFloat16{});
  case DType::f32: return body(float{});
  case DType::f64: return body(double{});
  case DType::c64: return body(std::complex<float>{});
  case DType::c128: return body(std::complex<double>{});
  default: throw Unsupported("elements of a type of few bits");
  }
}

/// The same by the bytes of an element, for what moves elements: 1, 2, 4, 8 or 16.
template <typename Function> auto with_width(int64_t bytes, Function body) {
  struct Sixteen {
    uint64_t halves[2];
  };
  switch (bytes) {
  case 1: return body(uint8_t{});
  case 2: return body(uint16_t{});
  case 4: return body(uint32_t{});
  case 8: return body(uint64_t{});
  case 16: return body(Sixteen{});
  default: throw Unsupported("elements of an unknown width");
  }
}

} // namespace disc::interpreter
