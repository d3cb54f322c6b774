// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The element types of compiled programs, and their names elsewhere.
#pragma once

#include <cstdint>
#include <string_view>

namespace disc {

enum class DType : uint8_t { f16, bf16, f32, f64, i1, i8, i16, i32, i64, u8, u16, u32, u64 };

/// Type codes of the DLPack standard.
enum class DLCode : uint8_t { integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, boolean = 6 };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // in headers
  std::string_view numpy; // in messages and in numpy / ml_dtypes
  int64_t size;           // bytes
  DLCode code;
};

inline constexpr DTypeInfo kDTypes[] = {
    {DType::f16, "f16", "float16", 2, DLCode::floating},      {DType::bf16, "bf16", "bfloat16", 2, DLCode::bfloat},
    {DType::f32, "f32", "float32", 4, DLCode::floating},      {DType::f64, "f64", "float64", 8, DLCode::floating},
    {DType::i1, "i1", "bool", 1, DLCode::boolean},            {DType::i8, "i8", "int8", 1, DLCode::integer},
    {DType::i16, "i16", "int16", 2, DLCode::integer},         {DType::i32, "i32", "int32", 4, DLCode::integer},
    {DType::i64, "i64", "int64", 8, DLCode::integer},         {DType::u8, "u8", "uint8", 1, DLCode::unsigned_integer},
    {DType::u16, "u16", "uint16", 2, DLCode::unsigned_integer}, {DType::u32, "u32", "uint32", 4, DLCode::unsigned_integer},
    {DType::u64, "u64", "uint64", 8, DLCode::unsigned_integer},
};

inline const DTypeInfo &info(DType dtype) { return kDTypes[static_cast<uint8_t>(dtype)]; }

/// Null when no dtype has that name.
inline const DTypeInfo *dtype_named(std::string_view name) {
  for (const DTypeInfo &entry : kDTypes)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

inline bool is_integer(DType dtype) { return dtype >= DType::i8; }
inline bool is_signed(DType dtype) { return dtype >= DType::i8 && dtype <= DType::i64; }
inline bool is_floating(DType dtype) { return dtype <= DType::f64; }

} // namespace disc
