// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "worker.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace disc::pjrt {

struct Worker::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool has_started = false, is_closed = false;
};

Worker::Worker() : queue_(std::make_shared<Queue>()) {}

Worker::~Worker() {
  std::lock_guard lock(queue_->mutex);
  queue_->is_closed = true;
  queue_->changed.notify_all();
}

void Worker::serve(const std::shared_ptr<Queue> &queue) {
  std::unique_lock lock(queue->mutex);
  for (;;) {
    queue->changed.wait(lock, [&] { return queue->is_closed || !queue->tasks.empty(); });
    if (queue->tasks.empty())
      return;
    std::function<void()> task = std::move(queue->tasks.front());
    queue->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr; // without the lock: what it kept may do anything when it goes
    lock.lock();
  }
}

void Worker::give(std::function<void()> task) {
  std::lock_guard lock(queue_->mutex);
  if (!queue_->has_started) // the thread may outlive this, and Python as well: nobody waits for it
    std::thread([queue = queue_] { serve(queue); }).detach();
  queue_->has_started = true;
  queue_->tasks.push_back(std::move(task));
  queue_->changed.notify_all();
}

std::shared_ptr<Signal> Worker::signal_after(std::function<void()> task) {
  auto signal = std::make_shared<Signal>();
  give([signal, task = std::move(task)] {
    std::optional<Failure> failure;
    try {
      task();
    } catch (...) {
      std::unique_ptr<PJRT_Error> error(current_error());
      failure.emplace(error->code, error->message);
    }
    signal->set(std::move(failure));
  });
  return signal;
}

std::shared_ptr<Signal> Worker::signal_of(std::shared_ptr<const Event> work) {
  return work ? signal_after([work = std::move(work)] { work->wait(); }) : nullptr;
}

} // namespace disc::pjrt
