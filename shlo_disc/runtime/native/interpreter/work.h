// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "op.h"

namespace disc::interpreter {

/// Roughly how many nanoseconds an op takes: at most some 10^15. Throws Unsupported for attributes that are wrong.
int64_t work_of(const Op &op);

} // namespace disc::interpreter
