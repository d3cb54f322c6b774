// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DISC_IMPORT_NUMPY
#include "numpy_api.h"

namespace disc {

namespace {

PyArray_Descr *bfloat16_descr = nullptr;

constexpr int kTypeNumbers[] = {NPY_HALF,  NPY_NOTYPE, NPY_FLOAT32, NPY_FLOAT64, NPY_BOOL,   NPY_INT8,  NPY_INT16,
                                NPY_INT32, NPY_INT64,  NPY_UINT8,   NPY_UINT16,  NPY_UINT32, NPY_UINT64};
static_assert(std::size(kTypeNumbers) == std::size(kDTypes));

} // namespace

bool import_numpy() {
  // The macro NumPy offers for this returns from the function that contains it.
  auto import = []() -> void * {
    import_array();
    return Py_None;
  };
  return import() != nullptr;
}

void set_bfloat16(PyArray_Descr *descr) {
  Py_INCREF(descr);
  Py_XSETREF(bfloat16_descr, descr);
}

std::optional<DType> dtype_of(const PyArray_Descr *descr) {
  switch (descr->type_num) {
  case NPY_HALF:
    return DType::f16;
  case NPY_FLOAT:
    return DType::f32;
  case NPY_DOUBLE:
    return DType::f64;
  case NPY_BOOL:
    return DType::i1;
  case NPY_BYTE:
    return DType::i8;
  case NPY_SHORT:
    return DType::i16;
  case NPY_INT:
    return DType::i32;
  case NPY_LONG:
  case NPY_LONGLONG:
    return DType::i64;
  case NPY_UBYTE:
    return DType::u8;
  case NPY_USHORT:
    return DType::u16;
  case NPY_UINT:
    return DType::u32;
  case NPY_ULONG:
  case NPY_ULONGLONG:
    return DType::u64;
  default:
    break;
  }
  if (bfloat16_descr && descr->type_num == bfloat16_descr->type_num)
    return DType::bf16;
  return std::nullopt;
}

PyArray_Descr *descr_of(DType dtype) {
  if (dtype != DType::bf16)
    return PyArray_DescrFromType(kTypeNumbers[static_cast<uint8_t>(dtype)]);
  if (!bfloat16_descr) {
    PyErr_SetString(PyExc_ImportError, "bfloat16 arrays need the package ml_dtypes");
    return nullptr;
  }
  Py_INCREF(bfloat16_descr);
  return bfloat16_descr;
}

} // namespace disc
