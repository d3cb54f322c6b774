// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements of arrays lie, and who computes with them: the processors of this machine, or a GPU.
#pragma once

#include "abi.h"
#include "array_view.h"
#include "command_clock.h"
#include "dlpack.h"
#include "memory.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disc {

struct CallSpec;

/// A kernel that is told operands as tensor maps, before the words of the one that takes any operands.
struct TensorMapKernel {
  std::string name;
  int64_t threads = 1;      // of a block
  int64_t shared_bytes = 0; // of a block, beyond what it declares
  int64_t element_bytes = 1;
  int64_t box_rows = 1, box_columns = 1; // of a box of an operand; its columns are neighbours in memory
};

/// One of matrix products, whose sides are the operands.
struct KernelByMaps : TensorMapKernel {
  bool lhs_depth_inside = false, rhs_depth_inside = false; // neighbours in memory are those along k
};

/// A number that is known, or that a word of a launch has.
struct WordOrNumber {
  int64_t word = -1; // of the kernel's, or -1
  int64_t number = 0;

  int64_t among(std::span<const int64_t> words) const {
    auto place = static_cast<size_t>(word); // beyond all of them for -1
    return place < words.size() ? words[place] : number;
  }
};

/// An operand of a kernel, as a tensor map describes it. Strides count elements; neighbours are along the first axis.
struct OperandByMap {
  struct Axis {
    WordOrNumber size, stride;
  };
  WordOrNumber pointer; // its address
  int64_t start = 0;   // its first element from there on
  std::vector<Axis> axes;
};

/// One of a launch, whose maps are made from the words.
struct KernelByMapsOfWords : TensorMapKernel {
  int64_t least_rows = 0;     // of the first operand: with fewer, the other kernel is better
  bool is_persistent = false; // blocks work on tile after tile
  std::vector<OperandByMap> operands;
};

/// A kernel that a program has for a device that is apart from the processor.
struct KernelSpec {
  std::string name;
  int64_t threads = 1; // of a block
  std::string where;   // the line of the user's program that it computes, or empty
  std::string fusion;  // the matrix product that it computes where no library does, or empty
  std::optional<KernelByMaps> by_maps; // the kernel that does where its sides can be described
  std::optional<KernelByMapsOfWords> by_maps_of_words; // the kernel that does where its operands can be

  /// What errors call the product.
  std::string product() const { return fusion + (where.empty() ? "" : " (" + where + ")"); }
};

/// The end of the work that a device had been given at some time.
class Event {
public:
  virtual ~Event() = default;

  /// Throws Error(device) when the work before it has failed, as `wait` does.
  virtual bool is_done() const = 0;
  virtual void wait() const = 0;

  /// Has the work that is given to another library's stream from now on wait for it, and nobody else.
  virtual void wait_in_stream(void *stream) const = 0;
};

/// A run of one segment of a program, and everything that it depends on, unless it asks for data.
struct SegmentRun {
  DiscRun function = nullptr;
  const DiscRuntime *runtime = nullptr;
  std::span<void *const> buffers;
  std::span<const int64_t> words;
  void *arena = nullptr;
};

/// What the host functions of one program call. Its functions do not throw, for there is compiled code around them.
class Commands {
public:
  virtual ~Commands() = default;

  const DiscRuntime &runtime() const { return runtime_; }

  /// Gives the commands of a run to the device. Throws what they have failed with.
  virtual void run(const SegmentRun &run) const {
    run.function(run.runtime, run.buffers.data(), run.words.data(), run.arena);
    check();
  }

protected:
  /// Throws what the commands that this thread has given since the last time have failed with.
  virtual void check() const = 0;

  DiscRuntime runtime_{};
};

/// A place with memory of its own and work that is done in the order in which it was given. Thread-safe.
class Device : public std::enable_shared_from_this<Device> {
public:
  explicit Device(std::shared_ptr<Allocator> given) : allocator(std::move(given)) {}
  virtual ~Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Its memory. A block that is released may be used for work that is given later, without waiting.
  const std::shared_ptr<Allocator> allocator;

  /// Whether the processor reads and writes its memory, and work is done when it is given.
  virtual bool is_host() const = 0;

  /// What it is to other libraries.
  virtual DLDevice dlpack() const = 0;

  /// The stream of its work, for producers of arrays to wait in; null where `is_host`.
  virtual void *stream() const { return nullptr; }

  /// Has the work that is given from now on wait for that of another library's stream.
  virtual void wait_in_stream(void *) {}

  /// The runtime of a call whose commands are timed.
  virtual std::unique_ptr<CommandClock> clock(const DiscRuntime &runtime) {
    return std::make_unique<CommandClock>(runtime);
  }

  /// Waits for all work on it, that of other libraries included.
  virtual void wait_for_all() {}

  /// The number of the device of this kind whose memory an address is; none where it is of no such device.
  virtual std::optional<int32_t> owner_of(const void *) { return std::nullopt; }

  /// Copies rows on the device, so that they follow each other.
  virtual void copy_rows(void *to, const void *from, const Rows &rows) = 0;

  /// Gives memory that is kept for later work back to the system; the bytes.
  virtual int64_t trim() { return allocator->trim(); }

  /// What its user should know and has not been told; empty most of the time.
  virtual std::string take_notice() { return {}; }

  /// As errors name it.
  virtual std::string name() const = 0;

  /// Copies from the host's memory, which may be changed afterwards.
  virtual void write(void *to, const void *from, int64_t bytes) = 0;

  /// Copies to the host's memory, once the work before is done.
  virtual void read(void *to, const void *from, int64_t bytes) = 0;

  /// The end of the work given so far; null where `is_host`.
  virtual std::shared_ptr<const Event> record() = 0;

  /// What a program with these library calls and kernels calls; `code` has the kernels. Throws Error(artifact) for what
  /// the device does not have, Error(device).
  virtual std::unique_ptr<Commands> commands(const std::vector<CallSpec> &calls, const std::vector<KernelSpec> &kernels,
                                             std::string_view code) = 0;
};

} // namespace disc
