// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "packed_forms.h"

#include "core/error.h"

#include <algorithm>

namespace disc::pjrt {

bool ArrayForms::Entry::may_be_stale(const Storage &elements) const {
  return watch ? !watch->is_unwritten() : elements.has_viewers() || elements.exposures() != exposures;
}

std::shared_ptr<Block> ArrayForms::form(const Executable &executable, const PackSpec &spec, const Storage &elements) {
  auto entry = [&] {
    return std::find_if(entries_.begin(), entries_.end(), [&](const Entry &e) { return e.spec.is_same_form(spec); });
  };
  int64_t exposures = elements.exposures();
  {
    std::lock_guard lock(mutex_);
    auto found = entry();
    if (found == entries_.end()) {
      entries_.push_back({spec, exposures});
      return nullptr;
    }
    if (found->form && !found->may_be_stale(elements))
      return found->form;
    bool was_written = found->is_written || (found->form && found->watch);
    *found = {.spec = spec, .exposures = exposures, .is_written = was_written};
    if (was_written)
      return nullptr;
  }
  std::shared_ptr<WriteWatch> watch;
  std::shared_ptr<Block> packed;
  try {
    if (elements.has_viewers() && !(watch = WriteWatch::of(elements.get(), spec.source_bytes())))
      return nullptr;
    packed = executable.pack(spec, elements.get());
  } catch (const AllocationFailure &) {
    return nullptr; // the call can do without
  }
  std::lock_guard lock(mutex_);
  if (auto found = entry(); found != entries_.end() && !found->form && found->exposures == exposures) {
    found->form = packed;
    found->watch = std::move(watch);
  }
  return packed;
}

bool ArrayForms::has(const PackSpec &spec) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [&](const Entry &entry) { return entry.form && entry.spec.is_same_form(spec); });
}

int64_t ArrayForms::count_uses(const PackSpec &spec, const Storage &elements, int64_t uses) {
  std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(entries_, [&](const Entry &entry) { return entry.spec.is_same_form(spec); });
  if (found == entries_.end())
    found = entries_.insert(found, {spec, elements.exposures()});
  return found->uses += uses;
}

void ArrayForms::clear() {
  std::lock_guard lock(mutex_);
  entries_.clear();
}

} // namespace disc::pjrt
