// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "graphs.h"

#include <algorithm>
#include <utility>

namespace disc::cuda {

namespace {

constexpr int kThreadLocal = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: what other threads do is not restricted

constexpr int64_t kFewestCommands = 2;         // a graph of one command saves nothing
constexpr int64_t kMostCommands = 4096;        // of a graph
constexpr int64_t kCommandsForEachGraph = 128; // on average, of those that are kept
constexpr int64_t kRunsForEachGraph = 4;       // that are remembered

/// All that the work of a run depends on, as bytes. Runs of one function have as many words and buffers.
std::string key_of(const SegmentRun &run) {
  std::string key;
  auto add = [&key](const void *data, size_t bytes) { key.append(static_cast<const char *>(data), bytes); };
  key.reserve(sizeof run.function + sizeof run.arena + run.buffers.size_bytes() + run.words.size_bytes());
  add(&run.function, sizeof run.function);
  add(&run.arena, sizeof run.arena);
  add(run.buffers.data(), run.buffers.size_bytes());
  add(run.words.data(), run.words.size_bytes());
  return key;
}

} // namespace

// ---- one graph ------------------------------------------------------------------------------------------------------

Graph::Graph(std::shared_ptr<const Gpu> gpu, const std::function<void()> &give) : gpu_(std::move(gpu)) {
  Gpu::Entered entered(*gpu_);
  GraphHandle graph = captured(give);
  Code code = gpu_->driver_.make_graph_program(&program_, graph, 0);
  gpu_->driver_.destroy_graph(graph);
  gpu_->check(code, "make a graph of captured work");
}

Graph::~Graph() {
  try {
    Gpu::Entered entered(*gpu_);
    gpu_->driver_.destroy_graph_program(program_); // once what was started of it is done
  } catch (const Error &) {
    // It is gone with the context.
  }
}

/// The driver's graph of what `give` gives, in a stream of its own: other threads go on to use the GPU's.
GraphHandle Graph::captured(const std::function<void()> &give) {
  const Driver &driver = gpu_->driver_;
  std::lock_guard lock(gpu_->capture_mutex_);
  Capture capture{gpu_.get(), gpu_->capture_stream_, {}};
  gpu_->check(driver.begin_capture(capture.stream, kThreadLocal), "capture work");
  std::exception_ptr failure;
  Gpu::capture_ = &capture;
  try {
    give();
  } catch (...) {
    failure = std::current_exception();
  }
  Gpu::capture_ = nullptr;
  GraphHandle graph = nullptr;
  Code code = driver.end_capture(capture.stream, &graph);
  if (failure || code != kSuccess) {
    if (graph)
      driver.destroy_graph(graph);
    if (failure)
      std::rethrow_exception(failure);
    gpu_->check(code, "finish the capture of work");
  }
  kernels_ = std::make_shared<const std::vector<std::string>>(std::move(capture.kernels));
  return graph;
}

void Graph::launch() const {
  std::lock_guard lock(mutex_);
  Gpu::Entered entered(*gpu_);
  gpu_->remember(kernels_);
  gpu_->check(gpu_->driver_.launch_graph(program_, gpu_->stream_), "start captured work");
}

// ---- those of a device ----------------------------------------------------------------------------------------------

void Graphs::run(const void *owner, const SegmentRun &run, const std::function<GivenWork()> &give) {
  std::string key = limit_ > 0 ? key_of(run) : std::string();
  Known known = limit_ > 0 ? look_up(key) : Known();
  if ((known.graph || known.is_due) && replay(key, known, give))
    return;
  GivenWork work = give();
  bool is_worth_it = !work.asks && work.commands >= kFewestCommands && work.commands <= kMostCommands;
  std::unique_lock lock(mutex_);
  ++counts_.runs;
  counts_.commands += work.commands;
  lock.unlock();
  if (limit_ > 0 && is_worth_it)
    remember(std::move(key), owner, work.commands);
}

/// What is known of a run, which counts as used.
Graphs::Known Graphs::look_up(const std::string &key) {
  std::lock_guard lock(mutex_);
  auto found = index_.find(key);
  if (found == index_.end())
    return {};
  entries_.splice(entries_.begin(), entries_, found->second);
  Entry &entry = entries_.front();
  bool is_due = !std::exchange(entry.is_tried, true);
  return {is_due, entry.commands, entry.graph};
}

/// Gives the work of a run as a graph; false where that fails, and nothing has been given.
bool Graphs::replay(const std::string &key, const Known &known, const std::function<GivenWork()> &give) {
  try {
    std::shared_ptr<const Graph> graph = known.graph;
    if (!graph)
      graph = std::make_shared<const Graph>(gpu_, [&] {
        if (GivenWork work = give(); work.asks || work.commands != known.commands)
          throw Error(ErrorKind::device, "could not capture work that is not the same each time");
      });
    graph->launch();
    keep(key, std::move(graph));
    return true;
  } catch (const Error &error) {
    fail(key, error.what());
    return false;
  }
}

/// Notes that a run has been given command by command.
void Graphs::remember(std::string key, const void *owner, int64_t commands) {
  Entries out; // is released without the lock
  std::lock_guard lock(mutex_);
  if (index_.contains(key))
    return;
  entries_.push_front({std::move(key), owner, commands, nullptr, false});
  index_.emplace(entries_.front().key, entries_.begin());
  shrink(out);
}

/// Notes that a run has been given as a graph, which is kept if it is not already.
void Graphs::keep(const std::string &key, std::shared_ptr<const Graph> graph) {
  Entries out;
  std::lock_guard lock(mutex_);
  ++counts_.replays;
  auto found = index_.find(key);
  if (found != index_.end() && found->second->graph == graph)
    return;
  ++counts_.captures;
  if (found == index_.end())
    return; // it was thrown out meanwhile
  found->second->graph = std::move(graph);
  ++counts_.graphs;
  counts_.graph_commands += found->second->commands;
  shrink(out);
}

/// Notes that a run could not be given as a graph, which is not tried again as long as that is remembered.
void Graphs::fail(const std::string &key, const std::string &why) {
  std::shared_ptr<const Graph> out;
  std::lock_guard lock(mutex_);
  if (counts_.failures++ == 0) {
    notice_ = "calls that come again are slower than they could be, as a CUDA graph failed: " + why;
    has_notice_ = true;
  }
  auto found = index_.find(key);
  if (found == index_.end() || !found->second->graph)
    return;
  out = std::move(found->second->graph);
  --counts_.graphs;
  counts_.graph_commands -= found->second->commands;
}

/// Moves an entry to `out`; the one behind it. The lock is held, so graphs must not end here.
Graphs::Entries::iterator Graphs::take_out(Entries::iterator entry, Entries &out) {
  if (entry->graph) {
    --counts_.graphs;
    counts_.graph_commands -= entry->commands;
  }
  index_.erase(entry->key);
  auto next = std::next(entry);
  out.splice(out.end(), entries_, entry);
  return next;
}

/// Moves the least recently used to `out` until the rest is within the limits. The lock is held.
void Graphs::shrink(Entries &out) {
  int64_t most_commands = std::max(limit_ * kCommandsForEachGraph, kMostCommands);
  while (counts_.graphs > limit_ || counts_.graph_commands > most_commands ||
         static_cast<int64_t>(entries_.size()) > limit_ * kRunsForEachGraph)
    take_out(std::prev(entries_.end()), out);
}

void Graphs::forget(const void *owner) {
  Entries out;
  std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();)
    entry = entry->owner == owner ? take_out(entry, out) : std::next(entry);
}

int64_t Graphs::clear() {
  Entries out;
  std::lock_guard lock(mutex_);
  int64_t graphs = counts_.graphs;
  index_.clear();
  out.swap(entries_);
  counts_.graphs = counts_.graph_commands = 0;
  return graphs;
}

LaunchCounts Graphs::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

std::string Graphs::take_notice() {
  if (!has_notice_.exchange(false))
    return {};
  std::lock_guard lock(mutex_);
  return std::exchange(notice_, {});
}

} // namespace disc::cuda
