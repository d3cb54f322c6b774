// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPUs as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace disc {

void bind_gpu(nanobind::module_ &module);

} // namespace disc
