// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One GPU: its memory, its stream of work, and what has become of that.
#pragma once

#include "core/device.h"
#include "driver.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace disc::cuda {

/// What is known of a GPU. Memory in bytes.
struct GpuFacts {
  std::string name;
  int major = 0, minor = 0; // of the compute capability
  int multiprocessors = 0;
  int64_t memory = 0;
  int64_t shared_memory = 0; // the most that a block can ask for
  int64_t registers = 0;     // of a multiprocessor, each of 32 bits
  int64_t cache = 0;         // of the second level
};

class Gpu;

/// The end of a GPU's work as it was when this was made. It keeps the GPU.
class Event : public disc::Event {
public:
  /// is_timed: it tells when that was, which takes the GPU longer.
  explicit Event(std::shared_ptr<const Gpu> gpu, bool is_timed = false);
  ~Event() override;
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  bool is_done() const override;
  void wait() const override;
  void wait_in_stream(void *stream) const override;

  /// How long after another it was. Both are timed, and waited for.
  std::chrono::nanoseconds since(const Event &before) const;

private:
  std::shared_ptr<const Gpu> gpu_;
  EventHandle handle_ = nullptr;
};

/// Kernels that were started together, as errors name them.
using KernelNames = std::shared_ptr<const std::vector<std::string>>;

/// A kernel of a module, and what errors say of it.
struct Kernel {
  FunctionHandle function = nullptr;
  std::string name;  // in the code
  KernelNames shown; // the name, and the line of the user's program that it computes
};

/// Work that a thread gives to a GPU while that is captured.
struct Capture {
  const Gpu *gpu = nullptr;
  StreamHandle stream = nullptr;
  std::vector<std::string> kernels; // as errors name them
};

/// How a kernel is started: sizes of the grid and of each block, and bytes of shared memory beyond what it declares.
struct LaunchSizes {
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned shared_bytes = 0;
};

/// A GPU through its primary context, which is also that of JAX and PyTorch in this process. Work is done in one stream,
/// in the order in which it was given, whichever thread gave it; only what is said to wait waits. Thread-safe.
///
/// Work that a thread gives while it is captured (graphs.h) is kept, and not done; asking for data is refused meanwhile.
///
/// After an error of the kind that ends a context, every call throws it again. In a child process after fork(), every
/// call throws.
class Gpu : public std::enable_shared_from_this<Gpu> {
public:
  static int count();

  /// The process's own of a number; it lives until the process ends. Throws Error(device) where there is none.
  static const std::shared_ptr<Gpu> &get(int ordinal);

  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  int ordinal() const { return ordinal_; }
  const GpuFacts &facts() const { return facts_; }
  int64_t free_memory() const;

  /// Memory, or 0 where there is not enough.
  Address allocate(size_t bytes) const;
  void release(Address address) const noexcept;

  /// Copies from the host; the source may be changed as soon as it returns.
  void write(Address to, const void *from, size_t bytes) const;

  /// Copies to the host, and waits for that.
  void read(void *to, Address from, size_t bytes) const;

  void copy(Address to, Address from, size_t bytes) const;

  /// Copies rows, so that they follow each other.
  void copy_rows(Address to, Address from, const Rows &rows) const;
  void fill(Address to, uint8_t byte, size_t bytes) const;

  /// Starts a kernel whose parameters are tensor maps and, behind them, words of 8 bytes.
  void launch(const Kernel &kernel, const LaunchSizes &sizes, std::span<const int64_t> words,
              std::span<const TensorMap> maps = {}) const;

  /// body(), with the GPU's context as that of the thread: for libraries, which give their work to `stream`.
  void within(const std::function<void()> &body) const;

  /// Notes what is given to the stream, or to the graph that is being captured: an error that shows later may come from
  /// it.
  void remember(const KernelNames &kernels) const;

  std::shared_ptr<Event> record() const;

  /// Waits for all work given so far. Throws Error(device) when any of it failed.
  void wait() const;

  /// The same, for the work of other libraries in this process as well.
  void wait_for_all() const;

  /// Has work that is given from now on wait for what another stream of this GPU's context has been given.
  void wait_in_stream(StreamHandle other) const;

  /// The number of the GPU whose memory an address is; none where it is of none.
  std::optional<int> owner_of(Address address) const;

  /// The one that work of this thread is to be given to.
  void *stream() const { return work_stream(); }

private:
  friend class Event;
  friend class Graph;
  friend class Module;
  class Staging;

  /// Makes a GPU's context the current one of this thread for a while.
  class Entered {
  public:
    explicit Entered(const Gpu &gpu);
    ~Entered();
    Entered(const Entered &) = delete;
    Entered &operator=(const Entered &) = delete;

  private:
    const Driver &driver_;
  };

  explicit Gpu(int ordinal);
  void check(Code code, const std::string &what) const;
  StreamHandle work_stream() const { return is_capturing() ? capture_->stream : stream_; }
  bool is_capturing() const { return capture_ && capture_->gpu == this; }
  void refuse_in_capture(const char *what) const;
  std::string since_last_wait() const;

  const Driver &driver_;
  int ordinal_;
  int device_ = 0;
  GpuFacts facts_;
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr;
  StreamHandle capture_stream_ = nullptr; // for work that is kept
  mutable std::mutex capture_mutex_;      // is held while work is captured: nobody may wait for the context then
  static thread_local Capture *capture_;  // of this thread, or null
  std::unique_ptr<Staging> staging_;
  mutable std::mutex mutex_;
  mutable std::vector<KernelNames> started_; // the last starts since work was last seen to be done, as a ring
  mutable size_t starts_ = 0;                // all of those
  mutable std::string lost_;                 // the error that ended the context
};

/// Code for a GPU: PTX, or a cubin.
class Module {
public:
  /// Throws Error(device) with the messages of the driver's compiler when it does not load.
  Module(std::shared_ptr<const Gpu> gpu, const std::string &image);
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// Throws Error(device) where there is no kernel of that name.
  /// `where`: the line of the user's program that it computes, or empty. `shared_bytes`: what launches may ask for.
  Kernel kernel(const std::string &name, const std::string &where = "", int shared_bytes = 0) const;

private:
  std::shared_ptr<const Gpu> gpu_;
  ModuleHandle handle_ = nullptr;
};

} // namespace disc::cuda
