// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What arrays of the processor's memory hold, to be compared with what they hold later.
#pragma once

#include "core/fingerprint.h"

#include <nanobind/nanobind.h>

#include <vector>

namespace disc {

class Contents {
public:
  /// Of contiguous arrays that have the buffer protocol. The caller holds the GIL, which is released meanwhile.
  /// Throws nb::python_error for an object that has not.
  Contents(ThreadPool &pool, const std::vector<nanobind::object> &arrays);

  bool operator==(const Contents &) const = default;

private:
  std::vector<Fingerprint> arrays_;
};

} // namespace disc
