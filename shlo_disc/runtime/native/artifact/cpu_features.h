// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which instruction sets this processor has, in LLVM's names.
#pragma once

#include <string>
#include <vector>

namespace disc {

/// The remedy for code that this processor cannot run.
constexpr const char *kCompileForAll =
    "compile the program with Options(cpu=\"x86-64-v3\"), by `python -m shlo_disc compile --cpu x86-64-v3`, or for several levels";

/// Those of the required features (an optional leading "+") that this processor lacks, sorted. Names with a leading "-"
/// ask for nothing.
std::vector<std::string> missing_features(const std::vector<std::string> &features);

/// Names in one line, such as "avx2, fma".
std::string joined(const std::vector<std::string> &names);

} // namespace disc
