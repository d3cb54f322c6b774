// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The only functions outside itself that generated code may call.
#pragma once

#include <cstdint>
#include <string_view>

namespace disc {

/// The address of a permitted C library function, or 0 when the name is not on the list.
uint64_t library_symbol(std::string_view name);

} // namespace disc
