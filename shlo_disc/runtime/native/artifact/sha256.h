// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SHA-256 of FIPS 180-4.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace disc {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);

} // namespace disc
