// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code of one program for several levels of processors, in one artifact.
#pragma once

#include "header.h"
#include "json.h"
#include "sections.h"

#include <string>
#include <string_view>
#include <vector>

namespace disc {

/// The most levels that an artifact has.
constexpr size_t kMostLevels = 9;

/// The name of a level's section: that of level 0 is the name itself, such as "object"; those of others end in their
/// number.
std::string level_section(std::string_view name, size_t level);

/// The headers of an artifact's levels, the least demanding one first. Throws Error(artifact).
std::vector<Json> level_headers(const Sections &sections);

/// The level to run: the last one whose features this processor has, or the first; `cpu`: the one of that name. Throws
/// Error(artifact) where there is none of that name, and, unless it is only to be read, where this processor lacks
/// features of it and another level runs.
size_t choose_level(const std::vector<Json> &headers, std::string_view cpu, bool to_run = true);

/// What processors need of one level. Object code, constants and what is packed of them lie in the bytes of the artifact.
struct Level {
  Header header;
  std::string cpu; // its name; empty: the processor that compiled it
  std::vector<std::string> names; // the user's names of the arguments, "" for one without
  std::string_view object, constants, packed;
};

/// The level that `choose_level` chooses. Throws Error(artifact), also where the code is for another device.
Level read_level(const Sections &sections, const std::vector<Json> &headers, std::string_view cpu);

} // namespace disc
