// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The packed forms of an array, for the products that have it on their right.
#pragma once

#include "core/write_watch.h"
#include "program/executable.h"
#include "storage.h"

#include <mutex>

namespace disc::pjrt {

/// An array that a call reads a second time in one form is packed, for all programs that read it in this form. Where
/// somebody outside of the framework can write its elements, that takes a watch of writes, and ends for good once the
/// elements are written. Thread-safe.
class ArrayForms {
public:
  /// The array's packed form; null when this is the first call that could use it, when its elements were written or may
  /// have been, or memory is short.
  std::shared_ptr<Block> form(const Executable &executable, const PackSpec &spec, const Storage &elements);

  void clear();

private:
  struct Entry {
    PackSpec spec;
    int64_t exposures; // of the elements, before they were packed
    std::shared_ptr<Block> form{};
    std::shared_ptr<WriteWatch> watch{}; // since before they were packed; null where nobody outside had the address
    bool is_written = false;

    /// Whether the elements may be others than those that were packed.
    bool may_be_stale(const Storage &elements) const;
  };

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

} // namespace disc::pjrt
