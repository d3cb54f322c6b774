// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "thread_pool.h"

#include <algorithm>
#include <ctime>
#include <immintrin.h>
#include <linux/futex.h>
#include <mutex>
#include <new>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace disc {

namespace {

constexpr uint32_t kOpen = 0x80000000u;
constexpr int64_t kSpinNanoseconds = 30'000;
constexpr timespec kAskedEach{0, 50'000'000};
constexpr int64_t kRangesPerThread = 4; // small enough to even out a thread that loses its processor for a while
constexpr int64_t kAlignFrom = 8192;
constexpr int64_t kRangeAlignment = 64;
constexpr size_t kWorkerStack = 8u << 20;

int64_t now_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// `most`: how long at most; null for as long as it takes.
void futex_wait(std::atomic<uint32_t> &word, uint32_t expected, const timespec *most = nullptr) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, most, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, 1 << 30, nullptr, nullptr, 0);
}

/// Calls `ready` until it holds or the spinning time is over; tells whether it held.
template <typename Ready> bool spin(Ready ready) {
  int64_t deadline = now_nanoseconds() + kSpinNanoseconds;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready())
        return true;
      _mm_pause();
    }
  } while (now_nanoseconds() < deadline);
  return ready();
}

/// Every live pool, so that fork() can reset them in the child. Never destroyed: worker threads outlive statics.
struct Registry {
  std::mutex mutex;
  std::vector<ThreadPool *> pools;
};

Registry &registry() {
  static Registry *instance = [] {
    auto *made = new Registry;
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] {
                     for (ThreadPool *pool : registry().pools)
                       pool->forget_threads();
                     registry().mutex.unlock();
                   });
    return made;
  }();
  return *instance;
}

} // namespace

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

ThreadPool::ThreadPool(int threads) : size_(threads > 0 ? threads : available_processors()) {
  shares_ = std::make_unique<Share[]>(static_cast<size_t>(size_));
  threads_.reserve(static_cast<size_t>(size_)); // starting them must not throw
  Registry &all = registry();
  std::lock_guard lock(all.mutex);
  all.pools.push_back(this);
}

ThreadPool::~ThreadPool() {
  {
    Registry &all = registry();
    std::lock_guard lock(all.mutex);
    std::erase(all.pools, this);
  }
  stop_.store(true);
  epoch_.fetch_add(1);
  futex_wake_all(epoch_);
  for (pthread_t thread : threads_)
    pthread_join(thread, nullptr);
}

void ThreadPool::forget_threads() {
  // The threads do not exist in the child; their handles must not be joined.
  threads_.clear();
  started_ = false;
  busy_.store(false);
  sleepers_.store(0);
  gate_.store(0);
}

/// Starts the workers. A system that refuses some of them leaves a smaller pool that still works.
bool ThreadPool::start_threads() {
  if (started_)
    return !threads_.empty();
  started_ = true;
  CPU_ZERO(&allowed_);
  sched_getaffinity(0, sizeof allowed_, &allowed_);
  avoided_ = -1;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kWorkerStack);
  for (int i = 1; i < size_; ++i) {
    std::unique_ptr<WorkerStart> start(new (std::nothrow) WorkerStart{this, i, epoch_.load()});
    pthread_t thread;
    if (!start || pthread_create(&thread, &attributes, worker_main, start.get()) != 0)
      break;
    (void)start.release();
    threads_.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  return !threads_.empty();
}

void *ThreadPool::worker_main(void *argument) {
  std::unique_ptr<WorkerStart> start(static_cast<WorkerStart *>(argument));
  start->pool->work_until_stopped(start->index, start->epoch);
  return nullptr;
}

void ThreadPool::work_until_stopped(int index, uint32_t epoch) {
  while (true) {
    epoch = wait_for_epoch(epoch);
    if (stop_.load(std::memory_order_acquire))
      return;
    uint32_t gate = gate_.load(std::memory_order_relaxed);
    bool joined = false;
    while ((gate & kOpen) && !joined)
      joined = gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire, std::memory_order_relaxed);
    if (!joined)
      continue;
    work(index);
    // The caller sleeps only after it has closed the gate, so the last worker out wakes it.
    if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      futex_wake_all(gate_);
  }
}

uint32_t ThreadPool::wait_for_epoch(uint32_t seen) {
  while (!spin([&] { return epoch_.load(std::memory_order_acquire) != seen; })) {
    sleepers_.fetch_add(1);
    futex_wait(epoch_, seen);
    sleepers_.fetch_sub(1);
  }
  return epoch_.load(std::memory_order_acquire);
}

/// Keeps the workers off the caller's processor. Where processors share no cache, as in many virtual machines, Linux wakes
/// a thread on the processor of the one that wakes it, where the two would take turns for milliseconds.
void ThreadPool::step_aside() {
  int processor = sched_getcpu();
  if (processor < 0 || processor == avoided_)
    return;
  avoided_ = processor;
  cpu_set_t others = allowed_;
  if (processor < CPU_SETSIZE)
    CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0)
    return;
  for (pthread_t thread : threads_)
    pthread_setaffinity_np(thread, sizeof others, &others);
}

/// Cuts the loop into equal ranges of at least `grain` iterations and opens the gate.
void ThreadPool::publish(Body body, void *context, int64_t total, int64_t grain) {
  int64_t ranges = std::min(total / grain, size_ * kRangesPerThread);
  job_ = {body, context, total, ranges, observer_of_loops};
  for (int i = 0; i < size_; ++i) {
    shares_[i].end = ranges * (i + 1) / size_;
    shares_[i].next.store(ranges * i / size_, std::memory_order_relaxed);
  }
  gate_.store(kOpen, std::memory_order_release);
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0)
    futex_wake_all(epoch_);
}

/// Ranges differ by one iteration at most. Long ones start at multiples of a vector, so that only the end of the loop
/// needs a masked tail.
int64_t ThreadPool::begin_of(int64_t range) const {
  auto begin = static_cast<int64_t>(static_cast<__int128>(job_.total) * range / job_.ranges);
  bool aligns = range < job_.ranges && job_.total / job_.ranges >= kAlignFrom;
  return aligns ? begin - begin % kRangeAlignment : begin;
}

void ThreadPool::run_range(int64_t range) const {
  if (job_.observer == nullptr) [[likely]]
    return job_.body(job_.context, begin_of(range), begin_of(range + 1));
  auto at = std::chrono::system_clock::now();
  auto start = std::chrono::steady_clock::now();
  job_.body(job_.context, begin_of(range), begin_of(range + 1));
  job_.observer->worked(at, std::chrono::steady_clock::now() - start);
}

/// Takes ranges of the own share first, for locality between consecutive loops, then what others have left.
void ThreadPool::work(int index) {
  for (int i = 0; i < size_; ++i) {
    Share &share = shares_[(index + i) % size_];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      int64_t range = share.next.fetch_add(1, std::memory_order_relaxed);
      if (range < share.end)
        run_range(range);
    }
  }
}

void ThreadPool::wait_until_idle() {
  uint32_t gate = gate_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  if (gate == 0 || spin([&] { return gate_.load(std::memory_order_acquire) == 0; }))
    return;
  WaitObserver *observer = observer_of_waits;
  while ((gate = gate_.load(std::memory_order_acquire)) != 0) {
    futex_wait(gate_, gate, observer ? &kAskedEach : nullptr);
    if (observer)
      observer->waited();
  }
}

void ThreadPool::run(Body body, void *context, int64_t total, int64_t grain) {
  if (total <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  bool free = total / grain >= 2 && size_ > 1 && !busy_.exchange(true, std::memory_order_acquire);
  if (!free)
    return body(context, 0, total);
  if (!start_threads()) {
    busy_.store(false, std::memory_order_release);
    return body(context, 0, total);
  }
  step_aside();
  publish(body, context, total, grain);
  work(0);
  wait_until_idle();
  busy_.store(false, std::memory_order_release);
}

} // namespace disc
