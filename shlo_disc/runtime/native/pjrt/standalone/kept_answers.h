// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler's answers in the compile cache, the directory of SHLO_DISC_CACHE_DIR. shlo_disc/pjrt/server.py writes them,
// and removes those used longest ago; here they are read, without Python.
#pragma once

#include "compiler_process.h"

#include <optional>

namespace disc::pjrt {

/// Whether there is a cache.
bool keeps_answers();

/// The key of what a task makes of some bytes, in hexadecimal: a SHA-256 of the task, the bytes, the functions that are
/// registered and that they name, this plugin's file, and the processor that is compiled for. Empty without a cache.
std::string answer_key(std::string_view task, const std::vector<std::string_view> &parts,
                       const std::vector<std::string> &functions);

/// The answer of a key; nothing where there is none, it is damaged, or another compiler gave it than the one beside this
/// plugin. Throws INVALID_ARGUMENT where others than this user could have written it.
std::optional<Answer> kept_answer(const std::string &key);

} // namespace disc::pjrt
