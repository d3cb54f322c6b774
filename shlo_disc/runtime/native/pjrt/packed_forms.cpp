// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "packed_forms.h"

#include "../error.h"

#include <algorithm>

namespace disc::pjrt {

std::shared_ptr<Block> ArrayForms::form(const Executable &executable, const PackSpec &spec, const void *elements) {
  auto entry = [&] {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry &e) { return e.spec.is_same_form(spec); });
  };
  {
    std::lock_guard lock(mutex_);
    auto found = entry();
    if (found == entries_.end()) {
      entries_.push_back({spec, nullptr});
      return nullptr;
    }
    if (found->form)
      return found->form;
  }
  std::shared_ptr<Block> packed;
  try {
    packed = executable.pack(spec, elements);
  } catch (const AllocationFailure &) {
    return nullptr; // the call can do without
  }
  std::lock_guard lock(mutex_);
  if (auto found = entry(); found != entries_.end() && !found->form)
    found->form = packed;
  return packed;
}

void ArrayForms::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

} // namespace disc::pjrt
