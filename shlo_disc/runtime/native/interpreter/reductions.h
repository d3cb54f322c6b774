// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "op.h"

namespace disc::interpreter {

Kernel reduce_window_kernel(const Op &op);      // windows.cpp
Kernel select_and_scatter_kernel(const Op &op); // windows.cpp
Kernel sort_kernel(const Op &op);               // sorting.cpp

} // namespace disc::interpreter
