// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "worker.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace disc::pjrt {

namespace {

constexpr std::chrono::seconds kForkWaits(5);

} // namespace

struct Worker::Queue {
  std::mutex mutex;
  std::condition_variable given, done;
  std::deque<std::function<void()>> tasks; // the first one is being done
  bool has_started = false, is_closed = false;
  bool is_aside = false; // the thread may not use the processor of the one that woke it
  pthread_t thread;
  cpu_set_t processors; // that it may use otherwise
  const int forks = fork_count();

  static thread_local const Queue *served; // by this thread

  void start(const std::shared_ptr<Queue> &self);
  void step_aside();
  void step_back();

  bool is_of_parent() const { return forks != fork_count(); }

  /// Waits until all tasks are done, unless this thread does them; tells whether they are.
  bool finish(std::chrono::steady_clock::time_point latest) {
    if (served == this)
      return false;
    std::unique_lock lock(mutex);
    return done.wait_until(lock, latest, [&] { return tasks.empty(); });
  }
};

/// Has the thread, which sleeps, wake up on another processor than the caller's. Where processors share no cache, as in
/// many virtual machines, Linux wakes a thread on the processor of the one that wakes it, where the two would take turns.
void Worker::Queue::step_aside() {
  cpu_set_t others = processors;
  if (int processor = sched_getcpu(); processor >= 0 && processor < CPU_SETSIZE)
    CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) > 0)
    is_aside = pthread_setaffinity_np(thread, sizeof others, &others) == 0;
}

/// Lets the thread, which is the caller, use all processors again, and the threads that it starts.
void Worker::Queue::step_back() {
  if (is_aside)
    pthread_setaffinity_np(thread, sizeof processors, &processors);
  is_aside = false;
}

thread_local const Worker::Queue *Worker::Queue::served = nullptr;

/// Those that have a thread. Never destroyed: threads outlive statics.
struct Worker::Queues {
  ForkMutex mutex;
  std::vector<std::weak_ptr<Queue>> all;

  static Queues &instance() {
    static auto *made = [] {
      pthread_atfork([] { finish_all(kForkWaits); }, nullptr, nullptr);
      return new Queues;
    }();
    return *made;
  }

  void add(const std::shared_ptr<Queue> &queue) {
    std::lock_guard lock(mutex);
    std::erase_if(all, [](const std::weak_ptr<Queue> &each) { return each.expired(); });
    all.push_back(queue);
  }

  std::vector<std::shared_ptr<Queue>> living() {
    std::vector<std::shared_ptr<Queue>> found;
    std::lock_guard lock(mutex);
    for (const std::weak_ptr<Queue> &each : all)
      if (std::shared_ptr<Queue> queue = each.lock(); queue && !queue->is_of_parent())
        found.push_back(std::move(queue));
    return found;
  }
};

Worker::Worker() : queue_(std::make_shared<Queue>()) {}

Worker::~Worker() {
  std::shared_ptr<Queue> last = queue();
  std::lock_guard lock(last->mutex);
  last->is_closed = true;
  last->given.notify_all();
}

/// The queue, a new one in the child of a fork. The parent's is kept: a thread that is not there waits on it.
std::shared_ptr<Worker::Queue> Worker::queue() {
  std::lock_guard lock(mutex_);
  if (queue_->is_of_parent()) {
    new std::shared_ptr<Queue>(std::move(queue_));
    queue_ = std::make_shared<Queue>();
  }
  return queue_;
}

/// The thread may outlive the worker, and Python as well: nobody waits for it.
void Worker::Queue::start(const std::shared_ptr<Queue> &self) {
  Queues::instance().add(self);
  CPU_ZERO(&processors);
  sched_getaffinity(0, sizeof processors, &processors);
  std::thread started([self] { serve(self); });
  thread = started.native_handle();
  started.detach();
  has_started = true;
}

void Worker::serve(const std::shared_ptr<Queue> &queue) {
  Queue::served = queue.get();
  std::unique_lock lock(queue->mutex);
  for (;;) {
    queue->given.wait(lock, [&] { return queue->is_closed || !queue->tasks.empty(); });
    if (queue->tasks.empty())
      return;
    queue->step_back();
    std::function<void()> task = std::move(queue->tasks.front());
    lock.unlock();
    task();
    task = nullptr; // without the lock: what it kept may do anything when it goes
    lock.lock();
    queue->tasks.pop_front();
    queue->done.notify_all();
  }
}

void Worker::give(std::function<void()> task) { give_within(std::numeric_limits<size_t>::max(), std::move(task)); }

void Worker::give_within(size_t most, std::function<void()> task) {
  std::shared_ptr<Queue> to = queue();
  {
    std::unique_lock lock(to->mutex);
    to->done.wait(lock, [&] { return to->tasks.size() < most; });
    if (!to->has_started)
      to->start(to);
    if (to->tasks.empty())
      to->step_aside();
    to->tasks.push_back(std::move(task));
  }
  to->given.notify_one();
}

std::shared_ptr<Signal> Worker::signal_after(std::function<void()> task) {
  auto signal = std::make_shared<Signal>();
  give([signal, task = std::move(task)] { signal->set(failure_of(task)); });
  return signal;
}

std::shared_ptr<Signal> Worker::signal_of(std::shared_ptr<const Event> work) {
  return work ? signal_after([work = std::move(work)] { work->wait(); }) : nullptr;
}

void Worker::finish() { queue()->finish(std::chrono::steady_clock::time_point::max()); }

bool Worker::finish_all(std::chrono::milliseconds most) {
  auto latest = std::chrono::steady_clock::now() + most;
  return std::ranges::all_of(Queues::instance().living(),
                             [&](const std::shared_ptr<Queue> &queue) { return queue->finish(latest); });
}

} // namespace disc::pjrt
