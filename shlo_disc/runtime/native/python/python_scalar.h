// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Python numbers as array elements.
#pragma once

#include "core/dtype.h"

#include <Python.h>
#include <string>

namespace disc {

/// Stores a Python bool, int or float as one element. As with JAX's weak types, a float may be rounded to a narrower
/// floating-point type; everything else must be exact. Returns "" or what the value is, for the message.
std::string store_python_scalar(PyObject *value, DType dtype, void *element);

} // namespace disc
