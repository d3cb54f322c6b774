// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The packed forms of an array, for the products that have it on their right.
#pragma once

#include "program/executable.h"
#include "storage.h"

#include <mutex>

namespace disc::pjrt {

/// An array that a call reads a second time in one form is packed, for all programs that read it in this form, unless
/// somebody outside of the framework can write its elements. Thread-safe.
class ArrayForms {
public:
  /// The array's packed form; null when this is the first call that could use it, when somebody has or had its address
  /// meanwhile, or memory is short.
  std::shared_ptr<Block> form(const Executable &executable, const PackSpec &spec, const Storage &elements);

  void clear();

private:
  struct Entry {
    PackSpec spec;
    std::shared_ptr<Block> form;
    int64_t exposures; // of the elements, before they were packed
  };

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

} // namespace disc::pjrt
