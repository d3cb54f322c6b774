// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed forms of arrays whose memory somebody else may write: used where the array is still what was packed.
#pragma once

#include "executable.h"
#include "core/contents.h"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace disc {

/// A packed form, and how its array was when it was packed.
struct RememberedForm {
  /// Throws AllocationFailure.
  RememberedForm(const Executable &executable, const PackSpec &spec, const void *source);

  const Contents contents; // of the array
  const std::shared_ptr<Block> block;
  std::atomic<bool> is_stale{false}; // the array has been found changed
};

/// The runtime of one call, in which the array of each of `forms` is compared with what was packed before the first
/// product that gains by it; from a product that does not, or of an array that has changed, the form is withheld.
class CheckingRuntime {
public:
  CheckingRuntime(const DiscRuntime &runtime, ThreadPool &pool, std::vector<std::shared_ptr<RememberedForm>> forms);
  CheckingRuntime(const CheckingRuntime &) = delete;
  CheckingRuntime &operator=(const CheckingRuntime &) = delete;

  const DiscRuntime &runtime() const { return checking_; }

private:
  struct Check {
    std::shared_ptr<RememberedForm> form;
    std::optional<bool> is_same;
  };

  static void dot(const DiscRuntime *runtime, const DiscDot *dot, int64_t command);
  static void convolution(const DiscRuntime *runtime, const DiscConvolution *convolution, int64_t command);
  template <auto Function, typename... Arguments> static void forward(const DiscRuntime *runtime, Arguments... arguments);

  const void *usable(const DiscDot &dot);
  void check_watched();
  Check *check_of(const void *packed);

  DiscRuntime plain_;
  DiscRuntime checking_;
  ThreadPool &pool_;
  std::vector<Check> checks_; // by the addresses of the forms
  bool are_watched_checked_ = false;
};

} // namespace disc
