// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs that come again as CUDA graphs: their work is captured once, and then given to the GPU as a whole.
#pragma once

#include "core/device.h"
#include "gpu.h"

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace disc::cuda {

/// Work of a GPU that can be given to it again and again. Thread-safe.
class Graph {
public:
  /// Captures what `give` gives to the GPU in this thread; nothing of it is done. Throws Error(device), and what `give`
  /// throws.
  Graph(std::shared_ptr<const Gpu> gpu, const std::function<void()> &give);
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  /// Gives the work to the GPU, behind what it has been given. Throws Error(device); then nothing of it is done.
  void launch() const;

private:
  GraphHandle captured(const std::function<void()> &give);

  std::shared_ptr<const Gpu> gpu_;
  KernelNames kernels_;
  GraphProgramHandle program_ = nullptr;
  mutable std::mutex mutex_; // the driver does not want one graph in two threads
};

/// How the runs of programs were given to a GPU.
struct LaunchCounts {
  int64_t runs = 0;           // command by command
  int64_t commands = 0;       // of those
  int64_t replays = 0;        // as a graph
  int64_t captures = 0;       // graphs that were made
  int64_t failures = 0;       // of graphs; the runs went on command by command
  int64_t graphs = 0;         // that are kept
  int64_t graph_commands = 0; // in them
};

/// What a run has given to a GPU.
struct GivenWork {
  int64_t commands = 0;
  bool asks = false; // it went on by what data said
};

/// The graphs of one device, by all that a run depends on: its function, what was planned, and the addresses of its
/// arguments, results, constants and arena. A run that comes for the second time is captured, so that one that comes
/// once costs no more than its commands. The least recently used are thrown out beyond a number. Thread-safe.
class Graphs {
public:
  /// `limit`: the most graphs that are kept, 0 for none.
  Graphs(std::shared_ptr<const Gpu> gpu, int64_t limit) : gpu_(std::move(gpu)), limit_(limit) {}

  /// Has the work of a run done. `give` gives it command by command, and throws what these fail with; where a graph
  /// fails, that is noted, and `give` called. `owner`: whose function it is.
  void run(const void *owner, const SegmentRun &run, const std::function<GivenWork()> &give);

  /// Throws out what has functions of `owner`, which are not to be called any more.
  void forget(const void *owner);

  /// Throws out everything; the number of graphs.
  int64_t clear();

  LaunchCounts counts() const;

  /// The first failure, once.
  std::string take_notice();

private:
  struct Entry {
    std::string key;
    const void *owner = nullptr;
    int64_t commands = 0;
    std::shared_ptr<const Graph> graph; // null: seen once, or not to be had
    bool is_tried = false;              // to make a graph
  };
  using Entries = std::list<Entry>; // most recently used first

  struct Known {
    bool is_due = false; // to be captured
    int64_t commands = 0;
    std::shared_ptr<const Graph> graph;
  };

  Known look_up(const std::string &key);
  bool replay(const std::string &key, const Known &known, const std::function<GivenWork()> &give);
  void remember(std::string key, const void *owner, int64_t commands);
  void keep(const std::string &key, std::shared_ptr<const Graph> graph);
  void fail(const std::string &key, const std::string &why);
  Entries::iterator take_out(Entries::iterator entry, Entries &out);
  void shrink(Entries &out);

  std::shared_ptr<const Gpu> gpu_;
  int64_t limit_;
  mutable std::mutex mutex_; // is not held while the driver is called
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> index_;
  LaunchCounts counts_;
  std::string notice_;
  std::atomic<bool> has_notice_{false};
};

} // namespace disc::cuda
