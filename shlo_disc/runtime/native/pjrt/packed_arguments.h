// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments that come again, and their packed forms.
#pragma once

#include "../executable.h"

#include <mutex>
#include <span>

namespace disc::pjrt {

/// Remembers, for each packed form that a program can use, which memory the last call had for it. Elements never
/// change, so memory that comes a second time is packed, and the packed form serves until another argument takes its
/// place. The memory is not kept alive. Thread-safe.
class PackedArguments {
public:
  /// The forms to use in a call with these arguments.
  PackedForms forms(const Executable &executable, std::span<const std::shared_ptr<void>> arguments);

private:
  struct Entry {
    std::weak_ptr<void> last;
    std::shared_ptr<Block> form;
  };

  std::mutex mutex_;
  std::vector<Entry> entries_; // one a PackSpec
};

} // namespace disc::pjrt
