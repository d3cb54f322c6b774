// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <pthread.h>

namespace disc::cuda {

namespace {

constexpr size_t kNamesKept = 16;

// CUdevice_attribute
constexpr int kMultiprocessors = 16, kCacheBytes = 38, kMajor = 75, kMinor = 76, kRegisters = 82, kSharedOptIn = 97;

constexpr unsigned kNonBlocking = 1;   // CU_STREAM_NON_BLOCKING: no order with the default stream
constexpr unsigned kWithoutTiming = 2; // CU_EVENT_DISABLE_TIMING

std::atomic<bool> is_forked{false};

int attribute(const Driver &driver, int number, int device) {
  int value = 0;
  driver.check(driver.device_attribute(&value, number, device), "ask a GPU what it has");
  return value;
}

GpuFacts facts_of(const Driver &driver, int device) {
  GpuFacts facts;
  char name[256] = "";
  driver.check(driver.device_name(name, sizeof name, device), "ask a GPU for its name");
  facts.name = name;
  size_t memory = 0;
  driver.check(driver.device_memory(&memory, device), "ask a GPU for the size of its memory");
  facts.memory = static_cast<int64_t>(memory);
  facts.major = attribute(driver, kMajor, device), facts.minor = attribute(driver, kMinor, device);
  facts.multiprocessors = attribute(driver, kMultiprocessors, device);
  facts.shared_memory = attribute(driver, kSharedOptIn, device);
  facts.registers = attribute(driver, kRegisters, device);
  facts.cache = attribute(driver, kCacheBytes, device);
  return facts;
}

} // namespace

/// Makes a GPU's context the current one of this thread for a while.
class Gpu::Entered {
public:
  explicit Entered(const Gpu &gpu) : driver_(gpu.driver_) {
    if (is_forked)
      throw Error(ErrorKind::device, "a GPU cannot be used in a process that was forked from one that uses it: start "
                                     "processes with multiprocessing's 'spawn'");
    std::string lost;
    {
      std::lock_guard lock(gpu.mutex_);
      lost = gpu.lost_;
    }
    if (!lost.empty())
      throw Error(ErrorKind::device, lost);
    driver_.check(driver_.push_context(gpu.context_), "enter the context of a GPU");
  }
  ~Entered() {
    ContextHandle left = nullptr;
    driver_.pop_context(&left);
  }
  Entered(const Entered &) = delete;
  Entered &operator=(const Entered &) = delete;

private:
  const Driver &driver_;
};

/// Pinned memory through which copies go from and to memory that is not: the processor fills one half while the GPU
/// reads the other.
class Gpu::Staging {
public:
  explicit Staging(const Gpu &gpu) : gpu_(gpu), driver_(gpu.driver_) {
    driver_.check(driver_.allocate_pinned(&memory_, 2 * kHalf, 0), "allocate pinned memory");
    for (EventHandle &event : done_)
      driver_.check(driver_.create_event(&event, kWithoutTiming), "create an event");
  }
  ~Staging() {
    for (EventHandle event : done_)
      driver_.destroy_event(event);
    driver_.release_pinned(memory_);
  }
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  void write(Address to, const char *from, size_t bytes) {
    std::lock_guard lock(mutex_);
    for (size_t start = 0; start < bytes; start += kHalf) {
      size_t count = std::min(kHalf, bytes - start);
      char *half = next_half();
      std::memcpy(half, from + start, count);
      gpu_.check(driver_.copy_in(to + start, half, count, gpu_.stream_), "copy to a GPU");
      gpu_.check(driver_.record_event(done_[turn_], gpu_.stream_), "record an event");
    }
  }

  void read(char *to, Address from, size_t bytes) {
    std::lock_guard lock(mutex_);
    size_t pending = 0; // bytes that are on their way to the half before
    for (size_t start = 0; start < bytes + kHalf && (start < bytes || pending); start += kHalf) {
      size_t before = turn_, count = start < bytes ? std::min(kHalf, bytes - start) : 0;
      if (count) {
        char *half = next_half();
        gpu_.check(driver_.copy_out(half, from + start, count, gpu_.stream_), "copy from a GPU");
        gpu_.check(driver_.record_event(done_[turn_], gpu_.stream_), "record an event");
      }
      if (pending) {
        gpu_.check(driver_.wait_for_event(done_[before]), "finish the work of a GPU");
        std::memcpy(to + start - kHalf, half_at(before), pending);
      }
      pending = count;
    }
  }

private:
  static constexpr size_t kHalf = size_t{4} << 20;

  char *half_at(size_t number) { return static_cast<char *>(memory_) + number * kHalf; }

  /// The half whose turn it is, once no copy uses it.
  char *next_half() {
    turn_ = 1 - turn_;
    gpu_.check(driver_.wait_for_event(done_[turn_]), "finish the work of a GPU");
    return half_at(turn_);
  }

  const Gpu &gpu_;
  const Driver &driver_;
  std::mutex mutex_;
  void *memory_ = nullptr;
  std::array<EventHandle, 2> done_{};
  size_t turn_ = 0;
};

int Gpu::count() {
  const Driver &driver = Driver::instance();
  int count = 0;
  driver.check(driver.device_count(&count), "count the GPUs");
  return count;
}

const std::shared_ptr<Gpu> &Gpu::get(int ordinal) {
  static std::mutex mutex;
  static auto *known = new std::map<int, std::shared_ptr<Gpu>>; // the driver may end before static destructors
  std::lock_guard lock(mutex);
  std::shared_ptr<Gpu> &gpu = (*known)[ordinal];
  if (!gpu)
    gpu.reset(new Gpu(ordinal));
  return gpu;
}

Gpu::Gpu(int ordinal) : driver_(Driver::instance()), ordinal_(ordinal) {
  static std::once_flag watched;
  std::call_once(watched, [] { pthread_atfork(nullptr, nullptr, [] { is_forked = true; }); });
  if (int found = count(); ordinal < 0 || ordinal >= found)
    throw Error(ErrorKind::device, "there is no GPU " + std::to_string(ordinal) + "; there are " + std::to_string(found));
  driver_.check(driver_.device_get(&device_, ordinal), "find GPU " + std::to_string(ordinal));
  facts_ = facts_of(driver_, device_);
  driver_.check(driver_.retain_context(&context_, device_), "create a context on GPU " + std::to_string(ordinal));
  Entered entered(*this);
  driver_.check(driver_.create_stream(&stream_, kNonBlocking), "create a stream");
  staging_ = std::make_unique<Staging>(*this);
}

Gpu::~Gpu() {
  if (is_forked || !lost_.empty())
    return;
  {
    Entered entered(*this);
    staging_.reset();
    driver_.destroy_stream(stream_);
  }
  driver_.release_context(device_);
}

void Gpu::remember(std::string name) const {
  std::lock_guard lock(mutex_);
  if (started_.size() < kNamesKept)
    started_.push_back(std::move(name));
  else
    started_[starts_ % kNamesKept] = std::move(name);
  ++starts_;
}

/// The kernels that may have caused an error which is seen only later, in their order.
std::string Gpu::since_last_wait() const {
  std::string text;
  for (size_t i = 0; i < started_.size(); ++i)
    text += (text.empty() ? "" : ", ") + started_[(starts_ + i) % started_.size()];
  return text.empty() ? text : "; the last kernels before it: " + text;
}

void Gpu::check(Code code, const std::string &what) const {
  if (code == kSuccess)
    return;
  std::string message = "could not " + what + " (GPU " + std::to_string(ordinal_) + "): " + driver_.text_of(code);
  if (is_sticky(code)) {
    std::lock_guard lock(mutex_);
    message += since_last_wait() + ". The GPU can be used again in a new process; with CUDA_LAUNCH_BLOCKING=1 in its "
                                   "environment the error names the kernel that caused it";
    if (lost_.empty())
      lost_ = message;
  }
  throw Error(ErrorKind::device, message);
}

int64_t Gpu::free_memory() const {
  Entered entered(*this);
  size_t free = 0, total = 0;
  check(driver_.memory_info(&free, &total), "ask for the free memory");
  return static_cast<int64_t>(free);
}

Address Gpu::allocate(size_t bytes) const {
  Entered entered(*this);
  Address address = 0;
  Code code = driver_.allocate(&address, bytes);
  if (code == kOutOfMemory)
    return 0;
  check(code, "allocate " + std::to_string(bytes) + " bytes");
  return address;
}

void Gpu::release(Address address) const noexcept {
  try {
    Entered entered(*this);
    driver_.release(address);
  } catch (const Error &) {
    // The memory is gone with the context.
  }
}

void Gpu::write(Address to, const void *from, size_t bytes) const {
  if (bytes == 0)
    return;
  Entered entered(*this);
  staging_->write(to, static_cast<const char *>(from), bytes);
}

void Gpu::read(void *to, Address from, size_t bytes) const {
  if (bytes == 0)
    return;
  Entered entered(*this);
  staging_->read(static_cast<char *>(to), from, bytes);
}

void Gpu::copy(Address to, Address from, size_t bytes) const {
  if (bytes == 0)
    return;
  Entered entered(*this);
  check(driver_.copy(to, from, bytes, stream_), "copy on a GPU");
}

void Gpu::fill(Address to, uint8_t byte, size_t bytes) const {
  if (bytes == 0)
    return;
  Entered entered(*this);
  check(driver_.fill(to, byte, bytes, stream_), "fill memory of a GPU");
}

void Gpu::launch(const Kernel &kernel, const LaunchSizes &sizes, std::span<const int64_t> words) const {
  Entered entered(*this);
  std::vector<void *> parameters;
  for (const int64_t &word : words)
    parameters.push_back(const_cast<int64_t *>(&word));
  std::string name = kernel.name + (kernel.where.empty() ? "" : " (" + kernel.where + ")");
  remember(name);
  const auto &[gx, gy, gz] = sizes.grid;
  const auto &[bx, by, bz] = sizes.block;
  check(driver_.launch(kernel.function, gx, gy, gz, bx, by, bz, sizes.shared_bytes, stream_, parameters.data(), nullptr),
        "start the kernel " + name);
}

void Gpu::within(const std::function<void()> &body) const {
  Entered entered(*this);
  body();
}

std::shared_ptr<Event> Gpu::record() const { return std::make_shared<Event>(shared_from_this()); }

void Gpu::wait() const {
  Entered entered(*this);
  check(driver_.wait_for_stream(stream_), "finish the work of a GPU");
  std::lock_guard lock(mutex_);
  started_.clear();
  starts_ = 0;
}

void Gpu::wait_for_all() const {
  Entered entered(*this);
  check(driver_.wait_for_context(), "finish the work of a GPU");
}

Event::Event(std::shared_ptr<const Gpu> gpu) : gpu_(std::move(gpu)) {
  Gpu::Entered entered(*gpu_);
  gpu_->check(gpu_->driver_.create_event(&handle_, kWithoutTiming), "create an event");
  Code code = gpu_->driver_.record_event(handle_, gpu_->stream_);
  if (code != kSuccess)
    gpu_->driver_.destroy_event(handle_);
  gpu_->check(code, "record an event");
}

Event::~Event() {
  try {
    Gpu::Entered entered(*gpu_);
    gpu_->driver_.destroy_event(handle_);
  } catch (const Error &) {
    // It is gone with the context.
  }
}

bool Event::is_done() const {
  Gpu::Entered entered(*gpu_);
  Code code = gpu_->driver_.query_event(handle_);
  if (code == kNotReady)
    return false;
  gpu_->check(code, "finish the work of a GPU");
  return true;
}

void Event::wait() const {
  Gpu::Entered entered(*gpu_);
  gpu_->check(gpu_->driver_.wait_for_event(handle_), "finish the work of a GPU");
}

Module::Module(std::shared_ptr<const Gpu> gpu, const std::string &image) : gpu_(std::move(gpu)) {
  // CUjit_option: where the compiler's messages go, and their room.
  constexpr int error_log = 5, error_log_bytes = 6;
  constexpr size_t room = 1 << 14;
  Gpu::Entered entered(*gpu_);
  std::string log(room, '\0');
  const int options[] = {error_log, error_log_bytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(room)};
  Code code = gpu_->driver_.load_module(&handle_, image.c_str(), 2, options, values);
  if (code == kSuccess)
    return;
  log.resize(std::strlen(log.c_str()));
  gpu_->check(code, "load code" + (log.empty() ? log : ", of which the driver says \"" + log + "\""));
}

Module::~Module() {
  try {
    gpu_->wait(); // for kernels of its own
    Gpu::Entered entered(*gpu_);
    gpu_->driver_.unload_module(handle_);
  } catch (const Error &) {
    // It is gone with the context.
  }
}

Kernel Module::kernel(const std::string &name, std::string where) const {
  Gpu::Entered entered(*gpu_);
  Kernel kernel{nullptr, name, std::move(where)};
  gpu_->check(gpu_->driver_.find_function(&kernel.function, handle_, name.c_str()), "find the kernel " + name);
  return kernel;
}

} // namespace disc::cuda
