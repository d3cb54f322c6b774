// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The release that the core was built of, as pyproject.toml has it.
#pragma once

namespace disc {

extern const char *const kRelease;

} // namespace disc
