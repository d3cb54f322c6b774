// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The element types of compiled programs, and their names elsewhere.
#pragma once

#include <cstdint>
#include <string_view>

namespace disc {

enum class DType : uint8_t {
  f16, bf16, f32, f64, i1, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, i2, i4, u2, u4,
  f4e2m1fn, f6e2m3fn, f6e3m2fn, f8e3m4, f8e4m3, f8e4m3b11fnuz, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu,
};

/// Type codes of the DLPack standard.
enum class DLCode : uint8_t {
  integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, complex = 5, boolean = 6, float8_e3m4 = 7,
  float8_e4m3 = 8, float8_e4m3b11fnuz = 9, float8_e4m3fn = 10, float8_e4m3fnuz = 11, float8_e5m2 = 12,
  float8_e5m2fnuz = 13, float8_e8m0fnu = 14, float6_e2m3fn = 15, float6_e3m2fn = 16, float4_e2m1fn = 17,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // in headers
  std::string_view numpy; // in messages and in numpy / ml_dtypes
  int64_t size;           // bytes that an element takes in memory
  int64_t bits;           // bits that it has
  DLCode code;

  /// What an element's address has to be a multiple of: a complex number is a pair of floats.
  int64_t alignment() const { return code == DLCode::complex ? size / 2 : size; }
  /// DLPack packs what is smaller than a byte; here every element has its own byte.
  bool has_dlpack() const { return bits % 8 == 0 || dtype == DType::i1; }
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::f16, "f16", "float16", 2, 16, DLCode::floating},
    {DType::bf16, "bf16", "bfloat16", 2, 16, DLCode::bfloat},
    {DType::f32, "f32", "float32", 4, 32, DLCode::floating},
    {DType::f64, "f64", "float64", 8, 64, DLCode::floating},
    {DType::i1, "i1", "bool", 1, 1, DLCode::boolean},
    {DType::i8, "i8", "int8", 1, 8, DLCode::integer},
    {DType::i16, "i16", "int16", 2, 16, DLCode::integer},
    {DType::i32, "i32", "int32", 4, 32, DLCode::integer},
    {DType::i64, "i64", "int64", 8, 64, DLCode::integer},
    {DType::u8, "u8", "uint8", 1, 8, DLCode::unsigned_integer},
    {DType::u16, "u16", "uint16", 2, 16, DLCode::unsigned_integer},
    {DType::u32, "u32", "uint32", 4, 32, DLCode::unsigned_integer},
    {DType::u64, "u64", "uint64", 8, 64, DLCode::unsigned_integer},
    {DType::c64, "c64", "complex64", 8, 64, DLCode::complex},
    {DType::c128, "c128", "complex128", 16, 128, DLCode::complex},
    {DType::i2, "i2", "int2", 1, 2, DLCode::integer},
    {DType::i4, "i4", "int4", 1, 4, DLCode::integer},
    {DType::u2, "u2", "uint2", 1, 2, DLCode::unsigned_integer},
    {DType::u4, "u4", "uint4", 1, 4, DLCode::unsigned_integer},
    {DType::f4e2m1fn, "f4e2m1fn", "float4_e2m1fn", 1, 4, DLCode::float4_e2m1fn},
    {DType::f6e2m3fn, "f6e2m3fn", "float6_e2m3fn", 1, 6, DLCode::float6_e2m3fn},
    {DType::f6e3m2fn, "f6e3m2fn", "float6_e3m2fn", 1, 6, DLCode::float6_e3m2fn},
    {DType::f8e3m4, "f8e3m4", "float8_e3m4", 1, 8, DLCode::float8_e3m4},
    {DType::f8e4m3, "f8e4m3", "float8_e4m3", 1, 8, DLCode::float8_e4m3},
    {DType::f8e4m3b11fnuz, "f8e4m3b11fnuz", "float8_e4m3b11fnuz", 1, 8, DLCode::float8_e4m3b11fnuz},
    {DType::f8e4m3fn, "f8e4m3fn", "float8_e4m3fn", 1, 8, DLCode::float8_e4m3fn},
    {DType::f8e4m3fnuz, "f8e4m3fnuz", "float8_e4m3fnuz", 1, 8, DLCode::float8_e4m3fnuz},
    {DType::f8e5m2, "f8e5m2", "float8_e5m2", 1, 8, DLCode::float8_e5m2},
    {DType::f8e5m2fnuz, "f8e5m2fnuz", "float8_e5m2fnuz", 1, 8, DLCode::float8_e5m2fnuz},
    {DType::f8e8m0fnu, "f8e8m0fnu", "float8_e8m0fnu", 1, 8, DLCode::float8_e8m0fnu},
};

inline const DTypeInfo &info(DType dtype) { return kDTypes[static_cast<uint8_t>(dtype)]; }

/// Null when no dtype has that name.
inline const DTypeInfo *dtype_named(std::string_view name) {
  for (const DTypeInfo &entry : kDTypes)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

inline bool is_signed(DType dtype) { return info(dtype).code == DLCode::integer; }
inline bool is_integer(DType dtype) { return is_signed(dtype) || info(dtype).code == DLCode::unsigned_integer; }
inline bool is_floating(DType dtype) { return dtype <= DType::f64; }
/// Floats of a byte or less, and complex numbers: NumPy and ml_dtypes alone turn Python numbers into these.
inline bool is_numpy_number(DType dtype) { return info(dtype).code == DLCode::complex || dtype >= DType::f4e2m1fn; }

} // namespace disc
