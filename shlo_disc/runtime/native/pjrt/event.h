// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: things that have happened, or will.
#pragma once

#include "error.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace disc::pjrt {

/// What an event tells its waiters; `set` once, by anybody who has a share. Thread-safe.
class Signal {
public:
  /// A failure is passed to everybody who asks.
  void set(std::optional<Failure> failure = std::nullopt);

  bool is_set() const;
  void wait() const;

  /// Waits, and throws the failure if there is one.
  void check() const;

  /// The failure as a new error, or null; waits.
  PJRT_Error *error() const;

  /// Calls `callback` once this is set, with an error that is the callback's; at once when it is set already.
  void when_set(PJRT_Event_OnReadyCallback callback, void *argument);

private:
  struct Waiter {
    PJRT_Event_OnReadyCallback callback;
    void *argument;
  };

  PJRT_Error *make_error() const { return failure_ ? new PJRT_Error(failure_->code, failure_->what()) : nullptr; }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool is_set_ = false;
  std::optional<Failure> failure_;
  std::vector<Waiter> waiters_;
};

/// An event of something that has happened.
PJRT_Event *ready_event();

/// An event that watches `signal`.
PJRT_Event *event_of(std::shared_ptr<Signal> signal);

void add_event_functions(PJRT_Api &api);

} // namespace disc::pjrt
