// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The extensions, each with the one that follows it.
#pragma once

#include "../program.h"
#include "pjrt_c_api_extensions.h"

#include <vector>

namespace disc::pjrt {

PJRT_Extension_Base *layouts_extension(PJRT_Extension_Base *next);
PJRT_Extension_Base *ffi_extension(PJRT_Extension_Base *next);

/// The layouts of the first `count` arrays; they live as long as the process.
std::vector<PJRT_Layouts_MemoryLayout *> layouts_of(const std::vector<ArraySpec> &arrays, size_t count);

} // namespace disc::pjrt
