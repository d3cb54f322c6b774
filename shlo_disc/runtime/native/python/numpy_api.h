// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy's C interface. One file defines DISC_IMPORT_NUMPY and calls import_numpy(); the others share its table.
#pragma once

#define PY_ARRAY_UNIQUE_SYMBOL disc_numpy_api
#ifndef DISC_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif

#include <Python.h>
#include <numpy/arrayobject.h>

#include "core/dtype.h"

#include <optional>

namespace disc {

static_assert(sizeof(npy_intp) == sizeof(int64_t));

/// Must be called once, when the module is imported; false with a Python error set when NumPy is missing.
bool import_numpy();

/// Tells what NumPy calls a dtype that it does not have itself (ml_dtypes registers these at run time).
void set_extension_dtype(DType dtype, PyArray_Descr *descr);

/// The element type of a NumPy dtype; none for types that programs do not have.
std::optional<DType> dtype_of(const PyArray_Descr *descr);

/// A new reference to the NumPy dtype; null with a Python error set when NumPy has none and none was registered.
PyArray_Descr *descr_of(DType dtype);

} // namespace disc
