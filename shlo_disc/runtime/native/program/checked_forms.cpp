// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checked_forms.h"

#include "kernels/few_rows.h"
#include "kernels/gemm.h"

#include <algorithm>

namespace disc {

namespace {

int64_t bytes_of(const PackSpec &spec) {
  return ((spec.k - 1) * spec.k_stride + (spec.n - 1) * spec.n_stride + 1) * info(spec.dtype).size;
}

/// A check reads all of the right-hand side once, which is what products of few rows take.
bool gains_by_check(const DiscDot &dot) { return dot.format > 1 || dot.m > most_rows_in_place(dot); }

} // namespace

RememberedForm::RememberedForm(const Executable &executable, const PackSpec &spec, const void *source)
    : bytes(bytes_of(spec)), fingerprint(executable.pool(), source, bytes), block(executable.pack(spec, source)) {}

template <auto Function, typename... Arguments>
void CheckingRuntime::forward(const DiscRuntime *runtime, Arguments... arguments) {
  const DiscRuntime &plain = static_cast<CheckingRuntime *>(runtime->opaque)->plain_;
  (plain.*Function)(&plain, arguments...);
}

CheckingRuntime::CheckingRuntime(const DiscRuntime &runtime, ThreadPool &pool, std::vector<FormToCheck> forms)
    : plain_(runtime), checking_{}, pool_(pool) {
  checking_.launch = forward<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t, int64_t>;
  checking_.dot = dot;
  checking_.opaque = this;
  checking_.call = forward<&DiscRuntime::call, int64_t, const int64_t *, int64_t>;
  checking_.convolution = convolution;
  checking_.attention = forward<&DiscRuntime::attention, const DiscAttention *, int64_t>;
  for (FormToCheck &form : forms)
    if (form.form)
      checks_.push_back({std::move(form), std::nullopt});
  std::ranges::sort(checks_, {}, [](const Check &check) { return check.form.form->block->address(); });
}

CheckingRuntime::Check *CheckingRuntime::check_of(const void *packed) {
  auto address = [](const Check &check) -> const void * { return check.form.form->block->address(); };
  auto found = std::ranges::lower_bound(checks_, packed, {}, address);
  return found != checks_.end() && address(*found) == packed ? &*found : nullptr;
}

/// The packed form of a product's right-hand side, or null.
const void *CheckingRuntime::usable(const DiscDot &dot) {
  Check *check = dot.packed == nullptr ? nullptr : check_of(dot.packed);
  if (check == nullptr)
    return dot.packed;
  if (!check->is_same && gains_by_check(dot)) {
    RememberedForm &form = *check->form.form;
    check->is_same = Fingerprint(pool_, check->form.source, form.bytes) == form.fingerprint;
    if (!*check->is_same)
      form.is_stale = true;
  }
  return check->is_same.value_or(false) ? dot.packed : nullptr;
}

void CheckingRuntime::dot(const DiscRuntime *runtime, const DiscDot *first, int64_t command) {
  auto &self = *static_cast<CheckingRuntime *>(runtime->opaque);
  DiscDot products[kMostProducts];
  int64_t count = 0;
  for (const DiscDot *dot = first; dot != nullptr && count < kMostProducts; dot = dot->next) {
    products[count] = *dot;
    products[count].packed = self.usable(*dot);
    if (count > 0)
      products[count - 1].next = &products[count];
    ++count;
  }
  self.plain_.dot(&self.plain_, products, command);
}

void CheckingRuntime::convolution(const DiscRuntime *runtime, const DiscConvolution *convolution, int64_t command) {
  auto &self = *static_cast<CheckingRuntime *>(runtime->opaque);
  DiscConvolution checked = *convolution;
  checked.product.packed = self.usable(convolution->product);
  self.plain_.convolution(&self.plain_, &checked, command);
}

} // namespace disc
