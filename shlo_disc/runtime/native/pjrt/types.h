// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The element types of the C API and of compiled programs.
#pragma once

#include "core/dtype.h"
#include "error.h"

namespace disc::pjrt {

/// Throws UNIMPLEMENTED for what programs have no elements of.
DType dtype_of(PJRT_Buffer_Type type);

PJRT_Buffer_Type buffer_type_of(DType dtype);

} // namespace disc::pjrt
