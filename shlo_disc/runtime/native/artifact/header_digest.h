// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ties a header to the code that was compiled with it.
#pragma once

#include "json.h"
#include "sha256.h"

namespace disc {

/// That of all that a header says, in whatever order and with whatever spaces, but for what is changed once the code is
/// compiled: the places of constants, whether they are packed, and what plugins add.
Digest header_digest(const Json &header);

} // namespace disc
