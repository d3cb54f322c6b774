// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "packed_arguments.h"

#include "../error.h"

namespace disc::pjrt {

namespace {

bool is_same(const std::weak_ptr<void> &last, const std::shared_ptr<void> &argument) {
  return !last.owner_before(argument) && !argument.owner_before(last) && last.lock() == argument;
}

} // namespace

PackedForms PackedArguments::forms(const Executable &executable, std::span<const std::shared_ptr<void>> arguments) {
  const std::vector<PackSpec> &packs = executable.program().packs;
  PackedForms forms(executable.constant_forms());
  for (size_t i = 0; i < packs.size(); ++i) {
    if (packs[i].buffer >= arguments.size())
      continue;
    const std::shared_ptr<void> &argument = arguments[packs[i].buffer];
    bool comes_again = false;
    {
      std::lock_guard lock(mutex_);
      entries_.resize(packs.size());
      Entry &entry = entries_[i];
      comes_again = is_same(entry.last, argument);
      if (!comes_again)
        entry = {argument, nullptr};
      forms[i] = entry.form;
    }
    if (!comes_again || forms[i])
      continue;
    try {
      forms[i] = executable.pack(packs[i], argument.get());
    } catch (const AllocationFailure &) {
      continue; // the call can do without
    }
    std::lock_guard lock(mutex_);
    if (is_same(entries_[i].last, argument))
      entries_[i].form = forms[i];
  }
  return forms;
}

} // namespace disc::pjrt
