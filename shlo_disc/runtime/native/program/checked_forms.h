// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed forms of arrays that come with calls: made for the first product that gains by one, and used where the array is
// still what was packed.
#pragma once

#include "executable.h"
#include "core/contents.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace disc {

/// What a call may use in place of an array on the right of its products. Safe from several threads.
class OfferedForm {
public:
  virtual ~OfferedForm() = default;

  /// Whether there is a packed form, perhaps of what the array was before.
  virtual bool is_packed() const = 0;

  /// Whether many are better asked at a time: each asks the kernel.
  virtual bool is_watched() const { return false; }

  /// Whether `take` reads the array where it is packed.
  virtual bool reads_array() const { return false; }

  /// Counts uses of the array where it lies; returns how many there have been, these included.
  virtual int64_t count_uses(int64_t uses) = 0;

  /// The packed form of the array as it is now, which is packed if it was not; or null.
  virtual std::shared_ptr<Block> take(const Executable &executable) = 0;
};

/// The form of an array whose memory somebody else may write, packed once at most.
class RememberedForm : public OfferedForm {
public:
  RememberedForm(const PackSpec &spec, const void *source) : spec_(spec), source_(source) {}

  bool is_packed() const override { return is_packed_; }
  bool is_watched() const override { return is_packed_ && !contents_->are_read(); }
  bool reads_array() const override { return is_packed_ && contents_->are_read(); }
  int64_t count_uses(int64_t uses) override { return uses_ += uses; }
  std::shared_ptr<Block> take(const Executable &executable) override;

  const void *source() const { return source_; }

  std::atomic<bool> is_stale{false}; // of no more use: the array has been found changed, or there was no memory

private:
  const PackSpec spec_;
  const void *source_;
  std::atomic<int64_t> uses_{0};
  std::mutex mutex_;
  std::atomic<bool> is_packed_{false}; // then these stay as they are
  std::optional<Contents> contents_;
  std::shared_ptr<Block> block_;
};

/// The runtime of one call, whose products find their packed forms among `forms`: the address that they are given is that
/// of the form that is offered. A product that does not gain gets none. The forms outlive the call.
class CheckingRuntime {
public:
  CheckingRuntime(const DiscRuntime &runtime, const Executable &executable, std::vector<OfferedForm *> forms);
  CheckingRuntime(const CheckingRuntime &) = delete;
  CheckingRuntime &operator=(const CheckingRuntime &) = delete;

  const DiscRuntime &runtime() const { return checking_; }

private:
  struct Check {
    OfferedForm *form;
    std::optional<std::shared_ptr<Block>> taken;
  };

  static void dot(const DiscRuntime *runtime, const DiscDot *dot, int64_t command);
  static void convolution(const DiscRuntime *runtime, const DiscConvolution *convolution, int64_t command);
  template <auto Function, typename... Arguments> static void forward(const DiscRuntime *runtime, Arguments... arguments);

  const void *usable(const DiscDot &dot, bool is_convolution);
  void check_watched();
  Check *check_of(const void *packed);

  DiscRuntime plain_;
  DiscRuntime checking_;
  const Executable &executable_;
  std::vector<Check> checks_; // by the addresses of the forms
  bool are_watched_checked_ = false;
};

} // namespace disc
