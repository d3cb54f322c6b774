// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's libraries, which are opened when they are needed first, and stay open for as long as the process runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace disc::cuda {

struct SharedLibrary {
  void *handle;
  std::string name; // that it was found by

  /// The first that there is of paths and names.
  static std::optional<SharedLibrary> open(const std::vector<std::string> &names);

  /// The address of a function. Throws Error(device) where an old library lacks it. what: the library, as in "cuFFT".
  /// advice: what helps.
  void *find(const char *function, const char *what, const char *advice) const;
};

} // namespace disc::cuda
