// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A run on processors that asks between its commands whether it is to end.
#pragma once

#include "core/device.h"
#include "core/thread_pool.h"

#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <exception>
#include <pthread.h>

namespace disc {

/// Whether the run of this thread is to end. Called now and then, between two commands; takes as long as it likes.
using IsInterrupted = bool (*)();

/// A run has ended before it was over. Its results are not there.
struct Interrupted : std::exception {
  const char *what() const noexcept override { return "the run was interrupted"; }
};

/// Compiled code takes no exceptions. It has nothing to clean up either, for a run allocates nothing, so a run that is to
/// end is left by a jump, from the thread that began it and outside of any command. A kernel with a loop over data asks in
/// its trips, on all threads, and returns; the jump follows.
class InterruptibleRun final : private WaitObserver {
public:
  InterruptibleRun(const SegmentRun &run, IsInterrupted is_interrupted);
  InterruptibleRun(const InterruptibleRun &) = delete;
  InterruptibleRun &operator=(const InterruptibleRun &) = delete;

  /// Throws Interrupted, and what the commands have failed with.
  void run(const Commands &commands);

private:
  static InterruptibleRun &of(const DiscRuntime *runtime) { return *static_cast<InterruptibleRun *>(runtime->opaque); }
  static void enter(const DiscRuntime *runtime, void *const *buffers, const int64_t *words, void *arena);
  static void trip(const DiscRuntime *runtime) { of(runtime).ask(); }
  static int64_t has_ended(const DiscRuntime *runtime);
  template <auto Function, typename... Arguments> static void asking(const DiscRuntime *runtime, Arguments... arguments);

  static const DiscRuntime kAsking;

  void ask();
  bool is_to_end() noexcept;
  void waited() noexcept override { is_to_end(); }

  const SegmentRun &run_;
  IsInterrupted is_interrupted_;
  DiscRuntime runtime_;
  std::jmp_buf start_;
  uint64_t next_ = 0; // when to ask again, by the processor's clock; 0 before the first command
  std::atomic<bool> has_ended_{false};
  const pthread_t thread_ = pthread_self();
};

} // namespace disc
