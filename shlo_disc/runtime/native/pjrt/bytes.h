// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes that a caller gets, and releases.
#pragma once

#include "pjrt_c_api.h"

#include <string>

struct PJRT_Bytes {
  std::string contents;
};

namespace disc::pjrt {

inline void delete_bytes(PJRT_Bytes *bytes) { delete bytes; }

} // namespace disc::pjrt
