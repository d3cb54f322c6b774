// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "packed_forms.h"

#include "core/error.h"

#include <algorithm>

namespace disc::pjrt {

std::shared_ptr<Block> ArrayForms::form(const Executable &executable, const PackSpec &spec, const Storage &elements) {
  auto entry = [&] {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry &e) { return e.spec.is_same_form(spec); });
  };
  int64_t exposures = elements.exposures();
  if (elements.has_viewers())
    return nullptr;
  {
    std::lock_guard lock(mutex_);
    auto found = entry();
    if (found == entries_.end()) {
      entries_.push_back({spec, nullptr, exposures});
      return nullptr;
    }
    if (found->exposures != exposures)
      *found = {spec, nullptr, exposures};
    if (found->form)
      return found->form;
  }
  std::shared_ptr<Block> packed;
  try {
    packed = executable.pack(spec, elements.get());
  } catch (const AllocationFailure &) {
    return nullptr; // the call can do without
  }
  std::lock_guard lock(mutex_);
  if (auto found = entry(); found != entries_.end() && !found->form && found->exposures == exposures)
    found->form = packed;
  return packed;
}

void ArrayForms::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

} // namespace disc::pjrt
