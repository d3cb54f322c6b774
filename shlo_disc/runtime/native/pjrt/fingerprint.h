// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 128 bits that depend on all of some bytes and on a secret of the process, so that nobody can look for two inputs that
// agree. They are good for comparisons within one process only.
#pragma once

#include <cstdint>
#include <string_view>

namespace disc::pjrt {

struct Fingerprint {
  uint64_t low, high;
  bool operator==(const Fingerprint &) const = default;
};

Fingerprint fingerprint(std::string_view bytes);

} // namespace disc::pjrt
