// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An artifact's header: what the call path needs of it, and whether this machine may run it.
#pragma once

#include "json.h"
#include "program/program.h"

#include <string_view>

namespace disc {

/// The header as JSON. Throws Error(artifact) where it is none, or no object.
Json read_header(std::string_view text);

/// Refuses another format, another architecture, a processor that lacks what the code uses, programs for GPUs.
/// Throws Error(artifact).
void check_target(const Json &header);

/// How many devices run the program together. Throws Error(artifact).
int64_t replicas_of(const Json &header);

/// The program, to be checked by Program::validate. Throws Error(artifact).
Program program_of(const Json &header);

} // namespace disc
