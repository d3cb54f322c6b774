// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which instruction sets this processor has, in LLVM's names.
#pragma once

#include <string>
#include <vector>

namespace disc {

/// Those of the required features (an optional leading "+") that this processor lacks, sorted. Names with a leading "-"
/// ask for nothing.
std::vector<std::string> missing_features(const std::vector<std::string> &features);

} // namespace disc
