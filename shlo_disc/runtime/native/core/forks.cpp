// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forks.h"

#include <atomic>
#include <new>
#include <pthread.h>

namespace disc {

namespace {

std::atomic<int> forks{0};

} // namespace

int fork_count() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

/// All mutexes that live. Never destroyed: threads outlive statics. Takes no memory: there may be none.
struct ForkMutexes {
  std::mutex mutex;
  ForkMutex *first = nullptr;

  static ForkMutexes &instance() {
    alignas(ForkMutexes) static char place[sizeof(ForkMutexes)];
    static ForkMutexes *all = [] {
      auto *made = new (place) ForkMutexes;
      auto free = [] { instance().unlock_all(); };
      pthread_atfork([] { instance().lock_all(); }, free, free);
      return made;
    }();
    return *all;
  }

  void lock_all() {
    mutex.lock();
    for (ForkMutex *each = first; each != nullptr; each = each->next_)
      each->mutex_.lock();
  }

  void unlock_all() {
    for (ForkMutex *each = first; each != nullptr; each = each->next_)
      each->mutex_.unlock();
    mutex.unlock();
  }

  void add(ForkMutex &one) {
    std::lock_guard lock(mutex);
    one.next_ = first;
    if (first != nullptr)
      first->previous_ = &one;
    first = &one;
  }

  void remove(ForkMutex &one) {
    std::lock_guard lock(mutex);
    (one.previous_ != nullptr ? one.previous_->next_ : first) = one.next_;
    if (one.next_ != nullptr)
      one.next_->previous_ = one.previous_;
  }
};

ForkMutex::ForkMutex() { ForkMutexes::instance().add(*this); }

ForkMutex::~ForkMutex() { ForkMutexes::instance().remove(*this); }

} // namespace disc
