// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DISC_IMPORT_NUMPY
#include "numpy_api.h"

namespace disc {

namespace {

/// By dtype: those that NumPy does not have itself, once they have been registered.
PyArray_Descr *extension_descrs[std::size(kDTypes)];

constexpr int kTypeNumbers[] = {NPY_HALF,  NPY_NOTYPE, NPY_FLOAT32, NPY_FLOAT64, NPY_BOOL,
                                NPY_INT8,  NPY_INT16,  NPY_INT32,   NPY_INT64,   NPY_UINT8,
                                NPY_UINT16, NPY_UINT32, NPY_UINT64, NPY_CFLOAT,  NPY_CDOUBLE};

int type_number(DType dtype) {
  auto index = static_cast<size_t>(dtype);
  return index < std::size(kTypeNumbers) ? kTypeNumbers[index] : NPY_NOTYPE;
}

} // namespace

bool import_numpy() {
  // The macro NumPy offers for this returns from the function that contains it.
  auto import = []() -> void * {
    import_array();
    return Py_None;
  };
  return import() != nullptr;
}

void set_extension_dtype(DType dtype, PyArray_Descr *descr) {
  Py_INCREF(descr);
  Py_XSETREF(extension_descrs[static_cast<size_t>(dtype)], descr);
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
  case NPY_CFLOAT:
    return DType::c64;
  case NPY_CDOUBLE:
    return DType::c128;
  default:
    break;
  }
  for (const DTypeInfo &entry : kDTypes) {
    const PyArray_Descr *known = extension_descrs[static_cast<size_t>(entry.dtype)];
    if (known && known->type_num == descr->type_num)
      return entry.dtype;
  }
  return std::nullopt;
}

PyArray_Descr *descr_of(DType dtype) {
  if (type_number(dtype) != NPY_NOTYPE)
    return PyArray_DescrFromType(type_number(dtype));
  PyArray_Descr *descr = extension_descrs[static_cast<size_t>(dtype)];
  if (!descr) {
    PyErr_Format(PyExc_ImportError, "%s arrays need the package ml_dtypes", info(dtype).numpy.data());
    return nullptr;
  }
  Py_INCREF(descr);
  return descr;
}

} // namespace disc
