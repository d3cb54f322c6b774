// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checked_forms.h"

#include "kernels/few_rows.h"
#include "kernels/gemm.h"

#include <algorithm>

namespace disc {

namespace {

constexpr int64_t kArraysToShare = 4; // that pay for handing them to another thread

/// A check that reads all of the right-hand side takes as long as a product of few rows.
bool gains_by_check(const DiscDot &dot, const Contents &contents) {
  return !contents.are_read() || dot.format > 1 || dot.m > most_rows_in_place(dot);
}

} // namespace

RememberedForm::RememberedForm(const Executable &executable, const PackSpec &spec, const void *source)
    : contents(executable.pool(), source, spec.source_bytes(), Contents::By::watch), block(executable.pack(spec, source)) {}

template <auto Function, typename... Arguments>
void CheckingRuntime::forward(const DiscRuntime *runtime, Arguments... arguments) {
  const DiscRuntime &plain = static_cast<CheckingRuntime *>(runtime->opaque)->plain_;
  (plain.*Function)(&plain, arguments...);
}

CheckingRuntime::CheckingRuntime(const DiscRuntime &runtime, ThreadPool &pool, std::vector<std::shared_ptr<RememberedForm>> forms)
    : plain_(runtime), checking_{}, pool_(pool) {
  checking_.launch = forward<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t, int64_t>;
  checking_.dot = dot;
  checking_.opaque = this;
  checking_.call = forward<&DiscRuntime::call, int64_t, const int64_t *, int64_t>;
  checking_.convolution = convolution;
  checking_.attention = forward<&DiscRuntime::attention, const DiscAttention *, int64_t>;
  checking_.attention_gradient = forward<&DiscRuntime::attention_gradient, const DiscAttentionGradient *, int64_t>;
  for (std::shared_ptr<RememberedForm> &form : forms)
    checks_.push_back({std::move(form), std::nullopt});
  std::ranges::sort(checks_, {}, [](const Check &check) { return check.form->block->address(); });
}

CheckingRuntime::Check *CheckingRuntime::check_of(const void *packed) {
  auto address = [](const Check &check) -> const void * { return check.form->block->address(); };
  auto found = std::ranges::lower_bound(checks_, packed, {}, address);
  return found != checks_.end() && address(*found) == packed ? &*found : nullptr;
}

/// Asks for all arrays that are watched at a time, by all threads: one by one that is a twentieth of a step of decoding.
void CheckingRuntime::check_watched() {
  are_watched_checked_ = true;
  std::vector<Check *> watched;
  for (Check &check : checks_)
    if (!check.form->contents.are_read())
      watched.push_back(&check);
  struct Job {
    Check *const *checks;
    ThreadPool &pool;
  } job{watched.data(), pool_};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    const Job &job = *static_cast<const Job *>(opaque);
    for (int64_t i = begin; i < end; ++i)
      job.checks[i]->is_same = job.checks[i]->form->contents.hold(job.pool);
  };
  pool_.run(body, &job, static_cast<int64_t>(watched.size()), kArraysToShare);
  for (Check *check : watched)
    if (!*check->is_same)
      check->form->is_stale = true;
}

/// The packed form of a product's right-hand side, or null.
const void *CheckingRuntime::usable(const DiscDot &dot) {
  Check *check = dot.packed == nullptr ? nullptr : check_of(dot.packed);
  if (check == nullptr)
    return dot.packed;
  if (!are_watched_checked_)
    check_watched();
  RememberedForm &form = *check->form;
  if (!check->is_same && gains_by_check(dot, form.contents)) {
    check->is_same = form.contents.hold(pool_);
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
