// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "types.h"

namespace disc::pjrt {

namespace {

struct Row {
  DType dtype;
  PJRT_Buffer_Type type;
};

constexpr Row kRows[] = {
    {DType::i1, PJRT_Buffer_Type_PRED},
    {DType::i2, PJRT_Buffer_Type_S2},
    {DType::i4, PJRT_Buffer_Type_S4},
    {DType::i8, PJRT_Buffer_Type_S8},
    {DType::i16, PJRT_Buffer_Type_S16},
    {DType::i32, PJRT_Buffer_Type_S32},
    {DType::i64, PJRT_Buffer_Type_S64},
    {DType::u2, PJRT_Buffer_Type_U2},
    {DType::u4, PJRT_Buffer_Type_U4},
    {DType::u8, PJRT_Buffer_Type_U8},
    {DType::u16, PJRT_Buffer_Type_U16},
    {DType::u32, PJRT_Buffer_Type_U32},
    {DType::u64, PJRT_Buffer_Type_U64},
    {DType::f16, PJRT_Buffer_Type_F16},
    {DType::bf16, PJRT_Buffer_Type_BF16},
    {DType::f32, PJRT_Buffer_Type_F32},
    {DType::f64, PJRT_Buffer_Type_F64},
    {DType::c64, PJRT_Buffer_Type_C64},
    {DType::c128, PJRT_Buffer_Type_C128},
    {DType::f4e2m1fn, PJRT_Buffer_Type_F4E2M1FN},
    {DType::f6e2m3fn, PJRT_Buffer_Type_F6E2M3FN},
    {DType::f6e3m2fn, PJRT_Buffer_Type_F6E3M2FN},
    {DType::f8e3m4, PJRT_Buffer_Type_F8E3M4},
    {DType::f8e4m3, PJRT_Buffer_Type_F8E4M3},
    {DType::f8e4m3b11fnuz, PJRT_Buffer_Type_F8E4M3B11FNUZ},
    {DType::f8e4m3fn, PJRT_Buffer_Type_F8E4M3FN},
    {DType::f8e4m3fnuz, PJRT_Buffer_Type_F8E4M3FNUZ},
    {DType::f8e5m2, PJRT_Buffer_Type_F8E5M2},
    {DType::f8e5m2fnuz, PJRT_Buffer_Type_F8E5M2FNUZ},
    {DType::f8e8m0fnu, PJRT_Buffer_Type_F8E8M0FNU},
};
static_assert(std::size(kRows) == std::size(kDTypes));

} // namespace

DType dtype_of(PJRT_Buffer_Type type) {
  for (const Row &row : kRows)
    if (row.type == type)
      return row.dtype;
  fail_unimplemented("the element type number " + std::to_string(type));
}

PJRT_Buffer_Type buffer_type_of(DType dtype) {
  for (const Row &row : kRows)
    if (row.dtype == dtype)
      return row.type;
  return PJRT_Buffer_Type_INVALID;
}

} // namespace disc::pjrt
