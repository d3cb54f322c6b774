// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A thread that works for a device, or waits for it, so that nobody else has to.
#pragma once

#include "core/device.h"
#include "core/forks.h"
#include "event.h"

#include <chrono>
#include <functional>
#include <memory>

namespace disc::pjrt {

/// Does what it is given in order, on a thread of its own, which starts with the first task and ends, once all is done,
/// after this is gone. Tasks keep what they use, and do not throw. Thread-safe.
///
/// A fork waits for the tasks of all workers, for some seconds at most. In the child, workers begin anew.
class Worker {
public:
  Worker();
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  void give(std::function<void()> task);

  /// The same, once fewer than `most` tasks are not yet done.
  void give_within(size_t most, std::function<void()> task);

  /// Does a task, after which the signal is set: with the task's failure, if it throws.
  std::shared_ptr<Signal> signal_after(std::function<void()> task);

  /// A signal that is set when the work before an event is done; null for null, which is no work.
  std::shared_ptr<Signal> signal_of(std::shared_ptr<const Event> work);

  /// Waits until all tasks are done.
  void finish();

  /// Waits for the tasks of all workers, so long at most; tells whether they are done.
  static bool finish_all(std::chrono::milliseconds most);

private:
  struct Queue;
  struct Queues;

  std::shared_ptr<Queue> queue();
  static void serve(const std::shared_ptr<Queue> &queue);

  ForkMutex mutex_;
  std::shared_ptr<Queue> queue_;
};

} // namespace disc::pjrt
