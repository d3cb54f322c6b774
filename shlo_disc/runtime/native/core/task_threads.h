// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads for tasks that wait for each other.
#pragma once

#include "forks.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace disc {

/// Runs tasks all at once, each on a thread of its own, for a task may wait for any other. Threads sleep between tasks and
/// are used again, with what they hold: stacks, and the scratch memory of kernels. There are as many as were ever needed at
/// a time. After a fork, the child starts its own. Thread-safe.
class TaskThreads {
public:
  /// One of the tasks, by its number. Does not throw.
  using Task = std::function<void(int64_t number)>;

  /// The threads of this process. Never destroyed: threads outlive statics.
  static TaskThreads &instance();

  /// Calls task(0) to task(count - 1), and returns when all have ended. The caller's thread does the first, unless
  /// `caller_waits`. Throws std::system_error or std::bad_alloc where a thread cannot start; nothing has been called then.
  void run(int64_t count, bool caller_waits, const Task &task);

private:
  struct Thread;

  std::vector<Thread *> take(size_t count);
  Thread *start();
  void give_back(Thread *thread) noexcept;

  ForkMutex mutex_;
  std::vector<Thread *> idle_; // with room for all
  size_t started_ = 0;
  int forks_ = fork_count();
};

} // namespace disc
