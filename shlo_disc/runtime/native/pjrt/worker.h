// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A thread that waits for a device, so that nobody else has to.
#pragma once

#include "core/device.h"
#include "event.h"

#include <functional>
#include <memory>

namespace disc::pjrt {

/// Does what it is given in order, on a thread of its own, which starts with the first task and ends, once all is done,
/// after this is gone. Tasks keep what they use.
class Worker {
public:
  Worker();
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  void give(std::function<void()> task);

  /// Does a task, after which the signal is set: with the task's failure, if it throws.
  std::shared_ptr<Signal> signal_after(std::function<void()> task);

  /// A signal that is set when the work before an event is done; null for null, which is no work.
  std::shared_ptr<Signal> signal_of(std::shared_ptr<const Event> work);

private:
  struct Queue;
  std::shared_ptr<Queue> queue_;
  static void serve(const std::shared_ptr<Queue> &queue);
};

} // namespace disc::pjrt
