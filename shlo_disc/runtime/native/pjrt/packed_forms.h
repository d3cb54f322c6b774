// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The packed forms of an array, for the products that have it on their right.
#pragma once

#include "core/write_watch.h"
#include "program/checked_forms.h"
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

  /// Whether there is one.
  bool has(const PackSpec &spec) const;

  /// Counts uses of the array by products that could use the form and do without; returns how many there have been.
  int64_t count_uses(const PackSpec &spec, const Storage &elements, int64_t uses);

  void clear();

private:
  struct Entry {
    PackSpec spec;
    int64_t exposures; // of the elements, before they were packed
    std::shared_ptr<Block> form{};
    std::shared_ptr<WriteWatch> watch{}; // since before they were packed; null where nobody outside had the address
    bool is_written = false;
    int64_t uses = 0;

    /// Whether the elements may be others than those that were packed.
    bool may_be_stale(const Storage &elements) const;
  };

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// A packed form as a call may use it. The array and the executable outlive it.
class ArrayForm : public OfferedForm {
public:
  ArrayForm(ArrayForms &forms, const PackSpec &spec, const Storage &elements)
      : forms_(forms), spec_(spec), elements_(elements) {}

  bool is_packed() const override { return forms_.has(spec_); }
  int64_t count_uses(int64_t uses) override { return forms_.count_uses(spec_, elements_, uses); }
  std::shared_ptr<Block> take(const Executable &executable) override { return forms_.form(executable, spec_, elements_); }

private:
  ArrayForms &forms_;
  const PackSpec &spec_;
  const Storage &elements_;
};

} // namespace disc::pjrt
