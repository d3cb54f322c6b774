// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A count of forks, and a mutex that may be held while another thread forks.
#pragma once

#include <mutex>

namespace disc {

/// How many forks lead from the process that loaded this code to this one. Where it differs from an earlier answer, the
/// threads of then are not in this process.
int fork_count();

/// A mutex that the child of a fork finds free: fork waits until no thread holds it. For sections that end by
/// themselves and take no other lock.
class ForkMutex {
public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex &) = delete;
  ForkMutex &operator=(const ForkMutex &) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

private:
  friend struct ForkMutexes;

  std::mutex mutex_;
  ForkMutex *previous_ = nullptr, *next_ = nullptr; // in the list of all
};

} // namespace disc
