// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Events: things that have happened, or will.
#pragma once

#include "core/forks.h"
#include "error.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace disc::pjrt {

/// The failure of a task; none where it does not throw.
std::optional<Failure> failure_of(const std::function<void()> &task);

/// What an event tells its waiters; `set` once, by anybody who has a share. One that was not set when the process was
/// forked never will be in the child, and counts as failed there. Thread-safe.
class Signal {
public:
  using Continuation = std::function<void(const std::optional<Failure> &failure)>;

  /// A failure is passed to everybody who asks.
  void set(std::optional<Failure> failure = std::nullopt);

  bool is_set() const { return state_.load(std::memory_order_acquire) != State::open || is_lost(); }

  /// Whether it is set, without a failure.
  bool has_succeeded() const { return state_.load(std::memory_order_acquire) == State::succeeded; }

  /// Waits, and throws the failure if there is one.
  void check() const;

  /// The failure as a new error, or null; waits.
  PJRT_Error *error() const;

  /// Calls `continuation` once this is set, on the thread that sets it; at once when it is set already.
  void then(Continuation continuation);

private:
  enum class State { open, succeeded, failed };

  bool is_lost() const { return forks_ != fork_count(); }
  std::optional<Failure> wait() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<State> state_{State::open};
  const int forks_ = fork_count();
  std::optional<Failure> failure_;
  std::vector<Continuation> continuations_;
};

/// An event of something that has happened.
PJRT_Event *ready_event();

/// An event that watches `signal`.
PJRT_Event *event_of(std::shared_ptr<Signal> signal);

void add_event_functions(PJRT_Api &api);

} // namespace disc::pjrt
