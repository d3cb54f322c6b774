// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much memory there is for this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace disc {

/// The bytes that the system and the control groups of this process have left. Pages count from when they are written. A
/// number that no machine has where the system does not tell.
int64_t available_memory() noexcept;

/// About how many bytes of a block from the system have no memory yet.
int64_t unwritten_bytes(const void *address, size_t size) noexcept;

} // namespace disc
