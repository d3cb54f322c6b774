// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments that come again, and their packed forms.
#pragma once

#include "program/checked_forms.h"

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <vector>

namespace disc {

namespace nb = nanobind;

/// Remembers, for each packed form that a program can use, which array the last call had for it: a jax.Array, a Buffer
/// or a NumPy array. An array that comes a second time is packed, and the packed form serves until another array takes
/// its place, or until the array has changed: that JAX never changes its own says nothing of others who share its
/// memory. Then it is not packed again. The arrays are not kept alive. The caller holds the GIL.
class Repeats {
public:
  using Pack = std::function<std::shared_ptr<RememberedForm>(size_t)>;

  /// What to look at in a call with these leaves: for each packed form that of its argument, or null.
  std::vector<std::shared_ptr<RememberedForm>> forms(const Program &program, const std::vector<PyObject *> &leaves,
                                                     const Pack &pack);

private:
  struct Entry {
    nb::object last; // a weak reference
    std::shared_ptr<RememberedForm> form;
    bool has_changed = false;
  };

  std::vector<Entry> entries_;
};

} // namespace disc
