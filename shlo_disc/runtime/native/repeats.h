// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Immutable arguments that come again, and their packed forms.
#pragma once

#include "executable.h"

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <vector>

namespace disc {

namespace nb = nanobind;

/// Remembers, for each packed form that a program can use, which jax.Array the last call had for it. An array that
/// comes a second time is packed, and the packed form serves until another array takes its place. The arrays are not
/// kept alive. The caller holds the GIL.
class Repeats {
public:
  using Pack = std::function<std::shared_ptr<Block>(size_t)>;

  /// The forms to use in a call with these leaves; `constants` are those that never change.
  PackedForms forms(const Program &program, const std::vector<PyObject *> &leaves, const PackedForms &constants,
                    const Pack &pack);

private:
  struct Entry {
    nb::object last; // a weak reference
    std::shared_ptr<Block> form;
  };

  std::vector<Entry> entries_;
};

} // namespace disc
