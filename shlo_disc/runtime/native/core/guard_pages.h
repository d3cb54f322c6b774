// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks that end at a page nobody may touch: an access past the end is a signal. For tests.
#pragma once

#include <cstddef>

namespace disc {

/// `bytes` bytes, every one 0xFF (a NaN of each float type), that end at an inaccessible page and start in the page
/// after another. With an `alignment` above the elements' the end may be short of the page by less than it. Null when
/// the system has no memory.
void *guarded_allocate(size_t bytes, size_t alignment);

/// Ends the process with a message when anything beside the block, on its own pages, was written.
void guarded_release(void *address, size_t bytes) noexcept;

/// An address that must not be dereferenced, and cannot be.
void *guarded_empty();

} // namespace disc
