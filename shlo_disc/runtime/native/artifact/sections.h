// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The container of an artifact, in the format of shlo_disc/runtime/artifact.py.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disc {

/// The sections by name, in their order, the header first. They lie in the bytes they were read from.
using Sections = std::vector<std::pair<std::string, std::string_view>>;

/// Checks every byte. Throws Error(artifact) in the words of Python's reader.
Sections read_sections(std::string_view bytes);

/// The contents of a section; empty where there is none.
std::string_view section_named(const Sections &sections, std::string_view name);

} // namespace disc
