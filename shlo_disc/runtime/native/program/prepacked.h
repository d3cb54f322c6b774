// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed forms of a program's constants as bytes: one after the other, in the order of `Program::packs`, each at a multiple
// of 64 bytes, zeros between.
#pragma once

#include "core/memory.h"
#include "core/thread_pool.h"
#include "program.h"

#include <memory>
#include <string>
#include <string_view>

namespace disc {

/// The elements of a block, which they keep.
inline std::shared_ptr<void> elements_of(const std::shared_ptr<Block> &block) {
  return block ? std::shared_ptr<void>(block, block->address()) : nullptr;
}

/// Writes the packed form of an array.
void pack_form(ThreadPool &pool, const PackSpec &spec, const void *source, void *target);

/// The bytes from one form to the next.
int64_t packed_room(const PackSpec &spec);

/// The packed forms of all constants of a program that is valid for them; empty where there are none.
std::string pack_constants(ThreadPool &pool, const Program &program, std::string_view constants);

/// Throws Error(artifact) unless the bytes have as many as the program's packed forms take.
void check_packed(const Program &program, std::string_view packed);

} // namespace disc
