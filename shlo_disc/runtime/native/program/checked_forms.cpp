// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checked_forms.h"

#include "core/error.h"
#include "kernels/few_rows.h"
#include "kernels/gemm.h"
#include "kernels/gemm_formats.h"

#include <algorithm>

namespace disc {

namespace {

constexpr int64_t kArraysToShare = 4; // that pay for handing them to another thread
constexpr int64_t kUsesInPlace = 32;  // of a large array, after which packing has paid by what each of them lost
constexpr int64_t kUsesOfMoreRows = 2; // that one counts as which packs the array for itself
constexpr int64_t kUsesOfColumns = 3;  // the same of dense columns, which take longer to pack
constexpr int64_t kLargeBytes = 1 << 20;

/// A check that reads all of the right-hand side takes as long as a product of few rows.
bool gains_by_check(const DiscDot &dot, const OfferedForm &form) {
  return !form.reads_array() || dot.format > 1 || dot.m > most_rows_in_place(dot);
}

/// The rent of a product whose right-hand side is not packed, in uses: what it loses of the price of packing, most of which
/// is that of memory nobody has touched. Narrow types and small arrays pay the price at once.
int64_t rent_of(const DiscDot &dot) {
  int64_t bytes = dot.k * dot.n * gemm::format_of(dot.format).element_bytes;
  bool is_large = dot.format <= 1 && dot.batch_rank == 0 && bytes >= kLargeBytes;
  if (is_large && dot.b_k == 1 && dot.b_n >= dot.k)
    return has_few_dots(dot) ? 1 : kUsesOfColumns;
  if (is_large && dot.b_n == 1 && dot.b_k >= dot.n)
    return dot.m > most_rows_in_place(dot) ? kUsesOfMoreRows : 1;
  return kUsesInPlace + 1;
}

/// Counts a product of an array that is not packed. Whether it pays for a packed form, which takes as much memory as the
/// array: products that lose little by a large one rent until they have paid the price.
bool counted_one_pays(const DiscDot &dot, OfferedForm &form) { return form.count_uses(rent_of(dot)) > kUsesInPlace; }

} // namespace

std::shared_ptr<Block> RememberedForm::take(const Executable &executable) {
  if (is_packed_) {
    if (contents_->hold(executable.pool()))
      return block_;
    is_stale = true;
    return nullptr;
  }
  std::lock_guard lock(mutex_);
  if (is_packed_)
    return block_; // another call has packed it just now
  try {
    contents_.emplace(executable.pool(), source_, spec_.source_bytes(), Contents::By::watch);
    block_ = executable.pack(spec_, source_);
  } catch (const AllocationFailure &) {
    is_stale = true; // calls can do without
    return nullptr;
  }
  is_packed_ = true;
  return block_;
}

template <auto Function, typename... Arguments>
void CheckingRuntime::forward(const DiscRuntime *runtime, Arguments... arguments) {
  const DiscRuntime &plain = static_cast<CheckingRuntime *>(runtime->opaque)->plain_;
  (plain.*Function)(&plain, arguments...);
}

CheckingRuntime::CheckingRuntime(const DiscRuntime &runtime, const Executable &executable, std::vector<OfferedForm *> forms)
    : plain_(runtime), checking_{}, executable_(executable) {
  checking_.launch = forward<&DiscRuntime::launch, DiscKernel, const int64_t *, int64_t, int64_t, int64_t>;
  checking_.dot = dot;
  checking_.opaque = this;
  checking_.call = forward<&DiscRuntime::call, int64_t, const int64_t *, int64_t>;
  checking_.convolution = convolution;
  checking_.attention = forward<&DiscRuntime::attention, const DiscAttention *, int64_t>;
  checking_.attention_gradient = forward<&DiscRuntime::attention_gradient, const DiscAttentionGradient *, int64_t>;
  std::ranges::sort(forms);
  for (OfferedForm *form : forms)
    checks_.push_back({form, std::nullopt});
}

CheckingRuntime::Check *CheckingRuntime::check_of(const void *packed) {
  auto address = [](const Check &check) -> const void * { return check.form; };
  auto found = std::ranges::lower_bound(checks_, packed, {}, address);
  return found != checks_.end() && address(*found) == packed ? &*found : nullptr;
}

/// Asks for all arrays that are watched at a time, by all threads: one by one that is a twentieth of a step of decoding.
void CheckingRuntime::check_watched() {
  are_watched_checked_ = true;
  std::vector<Check *> watched;
  for (Check &check : checks_)
    if (check.form->is_watched())
      watched.push_back(&check);
  struct Job {
    Check *const *checks;
    const Executable &executable;
  } job{watched.data(), executable_};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    const Job &job = *static_cast<const Job *>(opaque);
    for (int64_t i = begin; i < end; ++i)
      job.checks[i]->taken = job.checks[i]->form->take(job.executable);
  };
  executable_.pool().run(body, &job, static_cast<int64_t>(watched.size()), kArraysToShare);
}

/// The packed form of a product's right-hand side, or null.
const void *CheckingRuntime::usable(const DiscDot &dot, bool is_convolution) {
  Check *check = dot.packed == nullptr ? nullptr : check_of(dot.packed);
  if (check == nullptr)
    return dot.packed;
  if (!are_watched_checked_)
    check_watched();
  OfferedForm &form = *check->form;
  if (!check->taken) {
    bool was_packed = form.is_packed();
    if (!is_convolution && !(was_packed ? gains_by_check(dot, form) : counted_one_pays(dot, form)))
      return nullptr;
    std::shared_ptr<Block> block = form.take(executable_);
    if (!is_convolution && !was_packed && !gains_by_check(dot, form))
      return nullptr; // as in the calls that follow, whose numbers are the same
    check->taken = std::move(block);
  }
  return *check->taken ? (*check->taken)->address() : nullptr;
}

void CheckingRuntime::dot(const DiscRuntime *runtime, const DiscDot *first, int64_t command) {
  auto &self = *static_cast<CheckingRuntime *>(runtime->opaque);
  DiscDot products[kMostProducts];
  int64_t count = 0;
  for (const DiscDot *dot = first; dot != nullptr && count < kMostProducts; dot = dot->next) {
    products[count] = *dot;
    products[count].packed = self.usable(*dot, false);
    if (count > 0)
      products[count - 1].next = &products[count];
    ++count;
  }
  self.plain_.dot(&self.plain_, products, command);
}

void CheckingRuntime::convolution(const DiscRuntime *runtime, const DiscConvolution *convolution, int64_t command) {
  auto &self = *static_cast<CheckingRuntime *>(runtime->opaque);
  DiscConvolution checked = *convolution;
  checked.product.packed = self.usable(convolution->product, true);
  self.plain_.convolution(&self.plain_, &checked, command);
}

} // namespace disc
