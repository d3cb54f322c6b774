// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One persistent set of threads for parallel loops.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <vector>

namespace disc {

/// The number of processors this process may run on.
int available_processors();

/// Is told of each range of a loop that a thread of a pool, the caller among them, has worked on. Thread-safe.
class RangeObserver {
public:
  virtual void worked(std::chrono::system_clock::time_point start, std::chrono::nanoseconds taken) = 0;

protected:
  ~RangeObserver() = default;
};

/// Who is told of the loops that this thread gives to pools; null for nobody.
inline thread_local RangeObserver *observer_of_loops = nullptr;

/// Is asked now and then by a thread that waits for others to end a loop of its own.
class WaitObserver {
public:
  virtual void waited() noexcept = 0;

protected:
  ~WaitObserver() = default;
};

/// Who is asked while this thread waits for a pool; null for nobody.
inline thread_local WaitObserver *observer_of_waits = nullptr;

/// Runs ranges of a loop on several threads, the caller among them.
///
/// Threads start at the first launch that needs them, spin for some tens of microseconds after work, then sleep on a
/// futex. A launch from inside a launch, and a launch while another caller has the pool, run inline on the caller:
/// callers never wait for each other. After fork() the child starts its own threads on its next launch.
class ThreadPool {
public:
  using Body = void (*)(void *context, int64_t begin, int64_t end);

  /// `threads` counts the caller; 0 means one a processor this process may run on.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return size_; }

  /// Splits [0, total) into contiguous ranges of at least `grain` iterations and returns when all have run.
  void run(Body body, void *context, int64_t total, int64_t grain);

  /// Restores the pool to its unstarted state; called in the child after fork().
  void forget_threads();

private:
  /// Ranges [next, end) that belong to one thread; others take from them when theirs are gone. Padded to two cache
  /// lines because processors fetch lines in pairs.
  struct alignas(128) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  struct Job {
    Body body = nullptr;
    void *context = nullptr;
    int64_t total = 0;  // iterations
    int64_t ranges = 1; // number of pieces
    RangeObserver *observer = nullptr;
  };
  struct WorkerStart {
    ThreadPool *pool;
    int index;
    uint32_t epoch;
  };

  static void *worker_main(void *start);
  void work_until_stopped(int index, uint32_t epoch);
  uint32_t wait_for_epoch(uint32_t seen);
  bool start_threads();
  void step_aside();
  void publish(Body body, void *context, int64_t total, int64_t grain);
  void work(int index);
  int64_t begin_of(int64_t range) const;
  void run_range(int64_t range) const;
  void wait_until_idle();

  int size_;
  bool started_ = false;
  std::vector<pthread_t> threads_;
  cpu_set_t allowed_;  // the processors that the workers may use
  int avoided_ = -1;   // the one that they leave to the caller
  std::unique_ptr<Share[]> shares_;
  Job job_;
  std::atomic<bool> busy_{false};
  alignas(128) std::atomic<uint32_t> epoch_{0}; // futex: changes with every job
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(128) std::atomic<uint32_t> gate_{0}; // futex: kOpen while workers may join, plus how many have joined
};

} // namespace disc
