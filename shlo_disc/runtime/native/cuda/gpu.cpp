// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <pthread.h>

namespace disc::cuda {

namespace {

constexpr size_t kNamesKept = 16;

// CUdevice_attribute
constexpr int kMultiprocessors = 16, kCacheBytes = 38, kMajor = 75, kMinor = 76, kRegisters = 82, kSharedOptIn = 97;

constexpr int kDeviceOrdinal = 9; // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL

constexpr int kMostSharedBytes = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

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

thread_local Capture *Gpu::capture_ = nullptr;

Gpu::Entered::Entered(const Gpu &gpu) : driver_(gpu.driver_) {
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

Gpu::Entered::~Entered() {
  ContextHandle left = nullptr;
  driver_.pop_context(&left);
}

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
  driver_.check(driver_.create_stream(&capture_stream_, kNonBlocking), "create a stream");
  staging_ = std::make_unique<Staging>(*this);
}

Gpu::~Gpu() {
  if (is_forked || !lost_.empty())
    return;
  {
    Entered entered(*this);
    staging_.reset();
    driver_.destroy_stream(capture_stream_);
    driver_.destroy_stream(stream_);
  }
  driver_.release_context(device_);
}

void Gpu::remember(const KernelNames &kernels) const {
  if (is_capturing()) {
    capture_->kernels.insert(capture_->kernels.end(), kernels->begin(), kernels->end());
    return;
  }
  std::lock_guard lock(mutex_);
  if (started_.size() < kNamesKept)
    started_.push_back(kernels);
  else
    started_[starts_ % kNamesKept] = kernels;
  ++starts_;
}

/// The kernels that may have caused an error which is seen only later, in their order.
std::string Gpu::since_last_wait() const {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < started_.size(); ++i) {
    const std::vector<std::string> &together = *started_[(starts_ + i) % started_.size()];
    names.insert(names.end(), together.begin(), together.end());
  }
  std::string text;
  for (size_t i = names.size() - std::min(names.size(), kNamesKept); i < names.size(); ++i)
    text.append(text.empty() ? "" : ", ").append(names[i]);
  return text.empty() ? text : "; the last kernels before it: " + text;
}

void Gpu::refuse_in_capture(const char *what) const {
  if (is_capturing())
    throw Error(ErrorKind::device, std::string("could not capture work that has to ") + what);
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
  refuse_in_capture("allocate memory");
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
  refuse_in_capture("copy to a GPU");
  Entered entered(*this);
  staging_->write(to, static_cast<const char *>(from), bytes);
}

void Gpu::read(void *to, Address from, size_t bytes) const {
  if (bytes == 0)
    return;
  refuse_in_capture("copy from a GPU");
  Entered entered(*this);
  staging_->read(static_cast<char *>(to), from, bytes);
}

void Gpu::copy(Address to, Address from, size_t bytes) const {
  if (bytes == 0)
    return;
  Entered entered(*this);
  check(driver_.copy(to, from, bytes, work_stream()), "copy on a GPU");
}

void Gpu::copy_rows(Address to, Address from, const Rows &rows) const {
  if (rows.count == 0 || rows.bytes == 0)
    return;
  Entered entered(*this);
  CopyOfRows copy;
  copy.from.device = from, copy.from.step = static_cast<size_t>(rows.step);
  copy.to.device = to, copy.to.step = static_cast<size_t>(rows.bytes);
  copy.bytes = static_cast<size_t>(rows.bytes), copy.rows = static_cast<size_t>(rows.count);
  check(driver_.copy_rows(&copy, work_stream()), "copy rows on a GPU");
}

void Gpu::fill(Address to, uint8_t byte, size_t bytes) const {
  if (bytes == 0)
    return;
  Entered entered(*this);
  check(driver_.fill(to, byte, bytes, work_stream()), "fill memory of a GPU");
}

void Gpu::launch(const Kernel &kernel, const LaunchSizes &sizes, std::span<const int64_t> words,
                 std::span<const TensorMap> maps) const {
  Entered entered(*this);
  std::vector<void *> parameters;
  for (const TensorMap &map : maps)
    parameters.push_back(const_cast<TensorMap *>(&map));
  for (const int64_t &word : words)
    parameters.push_back(const_cast<int64_t *>(&word));
  const std::string &name = kernel.shown->front();
  remember(kernel.shown);
  const auto &[gx, gy, gz] = sizes.grid;
  const auto &[bx, by, bz] = sizes.block;
  Code code = driver_.launch(kernel.function, gx, gy, gz, bx, by, bz, sizes.shared_bytes, work_stream(),
                             parameters.data(), nullptr);
  if (code != kSuccess)
    check(code, "start the kernel " + name);
}

void Gpu::within(const std::function<void()> &body) const {
  Entered entered(*this);
  body();
}

std::shared_ptr<Event> Gpu::record() const { return std::make_shared<Event>(shared_from_this()); }

void Gpu::wait() const {
  refuse_in_capture("wait for a GPU");
  Entered entered(*this);
  check(driver_.wait_for_stream(stream_), "finish the work of a GPU");
  std::lock_guard lock(mutex_);
  started_.clear();
  starts_ = 0;
}

void Gpu::wait_for_all() const {
  refuse_in_capture("wait for a GPU");
  std::lock_guard lock(capture_mutex_);
  Entered entered(*this);
  check(driver_.wait_for_context(), "finish the work of a GPU");
}

void Gpu::wait_in_stream(StreamHandle other) const {
  refuse_in_capture("wait for another stream");
  Entered entered(*this);
  EventHandle event = nullptr;
  check(driver_.create_event(&event, kWithoutTiming), "create an event");
  Code code = driver_.record_event(event, other);
  if (code == kSuccess)
    code = driver_.stream_waits(stream_, event, 0);
  driver_.destroy_event(event); // once it has happened
  check(code, "wait for the stream of another library");
}

std::optional<int> Gpu::owner_of(Address address) const {
  Entered entered(*this);
  int ordinal = -1;
  Code code = driver_.pointer_attribute(&ordinal, kDeviceOrdinal, address);
  if (code == kInvalidValue)
    return std::nullopt;
  check(code, "ask whose memory an address is");
  return ordinal < 0 ? std::nullopt : std::optional(ordinal); // -2: memory of the host's
}

Event::Event(std::shared_ptr<const Gpu> gpu, bool is_timed) : gpu_(std::move(gpu)) {
  Gpu::Entered entered(*gpu_);
  gpu_->check(gpu_->driver_.create_event(&handle_, is_timed ? 0 : kWithoutTiming), "create an event");
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

void Event::wait_in_stream(void *stream) const {
  Gpu::Entered entered(*gpu_);
  Code code = gpu_->driver_.stream_waits(static_cast<StreamHandle>(stream), handle_, 0);
  gpu_->check(code, "have the stream of another library wait");
}

std::chrono::nanoseconds Event::since(const Event &before) const {
  Gpu::Entered entered(*gpu_);
  float milliseconds = 0;
  gpu_->check(gpu_->driver_.elapsed_time(&milliseconds, before.handle_, handle_), "time the work of a GPU");
  return std::chrono::nanoseconds(std::llround(double{milliseconds} * 1e6));
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

Kernel Module::kernel(const std::string &name, const std::string &where, int shared_bytes) const {
  Gpu::Entered entered(*gpu_);
  std::vector<std::string> shown{name + (where.empty() ? "" : " (" + where + ")")};
  Kernel kernel{nullptr, name, std::make_shared<const std::vector<std::string>>(std::move(shown))};
  gpu_->check(gpu_->driver_.find_function(&kernel.function, handle_, name.c_str()), "find the kernel " + name);
  if (shared_bytes > 0)
    gpu_->check(gpu_->driver_.set_function_attribute(kernel.function, kMostSharedBytes, shared_bytes),
                "give the kernel " + name + " shared memory");
  return kernel;
}

} // namespace disc::cuda
