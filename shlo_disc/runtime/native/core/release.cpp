// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "release.h"

namespace disc {

const char *const kRelease = DISC_RELEASE; // CMakeLists.txt

} // namespace disc
