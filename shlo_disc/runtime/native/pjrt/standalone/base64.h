// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Base 64 of RFC 4648, section 4, in which headers hold bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace disc::pjrt {

/// The bytes that a text stands for; nothing where it is not padded base 64.
std::optional<std::string> decode_base64(std::string_view text);

} // namespace disc::pjrt
