// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An artifact's header: what the call path needs of it, and whether this machine may run it.
#pragma once

#include "json.h"
#include "program/program.h"

#include <string_view>

namespace disc {

/// What a header says of a program, but for its pytrees, which are Python's.
struct Header {
  Program program; // to be checked by Program::validate
  int64_t replicas = 1; // how many devices run it together
  std::string device;   // what code of its own the target names; empty: processors
};

/// The header as JSON. Throws Error(artifact) where it is none, or no object.
Json parse_header(std::string_view text);

/// What a header says of a program, for whatever machine that is. Throws Error(artifact).
Program program_of(const Json &header);

/// Refuses another format, another architecture, and a processor that lacks what the code uses. Throws Error(artifact).
Header read_header(const Json &json);

} // namespace disc
