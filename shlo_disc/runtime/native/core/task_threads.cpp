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

/// One that sleeps until it is given work. Never ends.
struct TaskThreads::Thread {
  /// A task and its number, and who counts the end of it.
  struct Work {
    const Task *task = nullptr;
    int64_t number = 0;
    Count *count = nullptr;
  };

  TaskThreads &owner;
  std::mutex mutex;
  std::condition_variable given;
  Work next; // no task while there is none

  void give(Work work) {
    {
      std::lock_guard lock(mutex);
      next = work;
    }
    given.notify_one();
  }

  void serve() {
    for (;;) {
      std::unique_lock lock(mutex);
      given.wait(lock, [&] { return next.task != nullptr; });
      Work work = std::exchange(next, {});
      lock.unlock();
      (*work.task)(work.number);
      owner.give_back(this); // first: the caller's next run is to find it
      work.count->end_one();
    }
  }
};

TaskThreads &TaskThreads::instance() {
  static auto *threads = new TaskThreads;
  return *threads;
}

/// Threads that sleep, started where there are too few. Throws std::system_error and std::bad_alloc.
std::vector<TaskThreads::Thread *> TaskThreads::take(size_t count) {
  std::vector<Thread *> taken;
  taken.reserve(count);
  {
    std::lock_guard lock(mutex_);
    if (forks_ != fork_count())
      idle_.clear(), started_ = 0; // threads of the parent, which are not here
    forks_ = fork_count();
    while (!idle_.empty() && taken.size() < count) {
      taken.push_back(idle_.back());
      idle_.pop_back();
    }
  }
  try {
    while (taken.size() < count)
      taken.push_back(start());
  } catch (...) {
    for (Thread *thread : taken)
      give_back(thread);
    throw;
  }
  return taken;
}

TaskThreads::Thread *TaskThreads::start() {
  {
    std::lock_guard lock(mutex_);
    idle_.reserve(++started_); // more than there are, where starting fails
  }
  std::unique_ptr<Thread> made(new Thread{*this, {}, {}, {}});
  std::thread([thread = made.get()] { thread->serve(); }).detach();
  return made.release();
}

void TaskThreads::give_back(Thread *thread) noexcept {
  std::lock_guard lock(mutex_);
  idle_.push_back(thread);
}

void TaskThreads::run(int64_t count, bool caller_waits, const Task &task) {
  int64_t first = caller_waits ? 0 : 1;
  std::vector<Thread *> threads = take(static_cast<size_t>(count - first));
  Count others(threads.size());
  for (size_t i = 0; i < threads.size(); ++i)
    threads[i]->give({&task, first + static_cast<int64_t>(i), &others});
  if (!caller_waits)
    task(0);
  others.wait();
}

} // namespace disc
