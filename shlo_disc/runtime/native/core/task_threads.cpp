// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "task_threads.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace disc {

namespace {

/// The tasks of a run that have not ended.
class Count {
public:
  explicit Count(size_t tasks) : left_(tasks) {}

  void end_one() {
    std::lock_guard lock(mutex_);
    if (--left_ == 0)
      none_.notify_one(); // with the lock: whoever waits may destroy this as soon as it has it
  }

  void wait() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [&] { return left_ == 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable none_;
  size_t left_;
};

} // namespace

/// One that sleeps until it has a task. Never ends.
struct TaskThreads::Thread {
  std::mutex mutex;
  std::condition_variable given;
  std::function<void()> task; // the next one, empty while there is none

  void give(std::function<void()> next) {
    {
      std::lock_guard lock(mutex);
      task = std::move(next);
    }
    given.notify_one();
  }

  void serve() {
    for (;;) {
      std::unique_lock lock(mutex);
      given.wait(lock, [&] { return task != nullptr; });
      std::function<void()> current = std::exchange(task, nullptr);
      lock.unlock();
      current();
    }
  }
};

TaskThreads &TaskThreads::instance() {
  static auto *threads = new TaskThreads;
  return *threads;
}

/// Threads that sleep, started where there are too few. Throws std::system_error.
std::vector<TaskThreads::Thread *> TaskThreads::take(size_t count) {
  std::vector<Thread *> taken;
  taken.reserve(count);
  {
    std::lock_guard lock(mutex_);
    if (forks_ != fork_count())
      idle_.clear(); // threads of the parent, which are not here
    forks_ = fork_count();
    while (!idle_.empty() && taken.size() < count) {
      taken.push_back(idle_.back());
      idle_.pop_back();
    }
  }
  try {
    while (taken.size() < count) {
      auto thread = std::make_unique<Thread>();
      std::thread([own = thread.get()] { own->serve(); }).detach();
      taken.push_back(thread.release());
    }
  } catch (...) {
    for (Thread *thread : taken)
      give_back(thread);
    throw;
  }
  return taken;
}

void TaskThreads::give_back(Thread *thread) {
  std::lock_guard lock(mutex_);
  idle_.push_back(thread);
}

void TaskThreads::run(int64_t count, bool caller_waits, const std::function<void(int64_t)> &task) {
  int64_t first = caller_waits ? 0 : 1;
  std::vector<Thread *> threads = take(static_cast<size_t>(count - first));
  Count others(threads.size());
  for (size_t i = 0; i < threads.size(); ++i)
    threads[i]->give([this, &task, &others, thread = threads[i], number = first + static_cast<int64_t>(i)] {
      task(number);
      give_back(thread); // first: the caller's next run is to find it
      others.end_one();
    });
  if (!caller_waits)
    task(0);
  others.wait();
}

} // namespace disc
