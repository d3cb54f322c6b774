// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The extensions, each with the one that follows it.
#pragma once

#include "pjrt_c_api_extensions.h"

namespace disc::pjrt {

PJRT_Extension_Base *layouts_extension(PJRT_Extension_Base *next);
PJRT_Extension_Base *ffi_extension(PJRT_Extension_Base *next);
PJRT_Extension_Base *memory_descriptions_extension(PJRT_Extension_Base *next);
PJRT_Extension_Base *profiler_extension(PJRT_Extension_Base *next);

} // namespace disc::pjrt
