// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_run.h"

#include "collectives.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>

namespace disc::cuda {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLook = 5ms;     // from one look of the watch to the next
constexpr auto kExplained = 1s; // in which the loss of a process is known, after NCCL has failed for it
constexpr auto kAborted = 10s;  // in which communicators are aborted

// The sites of meetings that are no collectives of a program.
constexpr int64_t kInvitation = -1, kJoined = -2, kEnd = -3;

/// What the members of a group tell each other before they connect; the first one's id counts.
struct Invitation {
  int64_t version = 0; // of NCCL
  NcclId id{};
};

std::mutex run_mutex;
thread_local const GpuParticipant *participant_of_thread = nullptr;

std::string version_text(int64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

int64_t own_version() {
  const NcclLibrary &nccl = NcclLibrary::instance();
  int version = 0;
  nccl.check(nccl.get_version(&version), "ask NCCL for its version");
  return version;
}

} // namespace

GpuRun::GpuRun(Gpus gpus, const std::vector<CallSpec> &calls) : lock_(run_mutex), gpus_(std::move(gpus)) {
  connect(calls);
  try {
    check();
  } catch (...) {
    abort();
    throw;
  }
}

GpuRun::GpuRun(Gpus gpus, const std::vector<CallSpec> &calls, SpanningRun &run, std::span<const int64_t> devices,
               SpanningGroups &groups)
    : lock_(run_mutex), gpus_(std::move(gpus)), spanning_(&run), devices_(devices), kept_(&groups) {
  connect(calls);
  auto has_spanning = [&](const CallSpec &call) {
    return std::ranges::any_of(groups_of(call), [&](const Members &members) { return spans(members); });
  };
  if (std::ranges::any_of(calls, has_spanning))
    watch_ = std::thread([this] { watch(); });
}

GpuRun::~GpuRun() { stop_watch(); }

const std::shared_ptr<Gpu> &GpuRun::gpu(int64_t participant) const {
  if (participant < 0 || participant >= static_cast<int64_t>(gpus_.size()))
    throw Error(ErrorKind::custom_call, "a collective is for participant " + std::to_string(participant) + " of " +
                                            std::to_string(gpus_.size()));
  return gpus_[static_cast<size_t>(participant)];
}

void GpuRun::connect(const std::vector<CallSpec> &calls) {
  for (const CallSpec &call : calls)
    for (const Members &members : groups_of(call))
      connect(members);
}

bool GpuRun::spans(const Members &members) const {
  return std::ranges::any_of(members, [&](int64_t member) {
    return spanning_->process_of(member) != spanning_->process_of(members.front());
  });
}

void GpuRun::connect(const Members &members) {
  if (members.size() < 2 || groups_.contains(members))
    return;
  Gpus gpus;
  for (int64_t member : members)
    gpus.push_back(gpu(member));
  if (std::ranges::none_of(gpus, [](const auto &gpu) { return gpu != nullptr; }))
    return;
  if (std::ranges::find(gpus, nullptr) == gpus.end()) {
    groups_.emplace(members, group_of(gpus));
    return;
  }
  std::vector<int64_t> devices;
  for (int64_t member : members)
    devices.push_back(devices_[static_cast<size_t>(member)]);
  std::shared_ptr<NcclGroup> &group = (*kept_)[devices];
  if (!group)
    group = std::make_shared<NcclGroup>(NcclLibrary::instance(), std::move(gpus));
  if (!group->is_joined())
    joins_.insert(members);
  groups_.emplace(members, group);
}

/// The first member of its process.
bool GpuRun::speaks(int64_t participant, const Members &members) const {
  int64_t process = spanning_->process_of(participant);
  auto first = std::ranges::find_if(members, [&](int64_t member) { return spanning_->process_of(member) == process; });
  return *first == participant;
}

Needs GpuRun::needs(const Members &members, int64_t bytes) const {
  return [this, &members, bytes](size_t owner, size_t reader) {
    bool speak = speaks(members[owner], members) && speaks(members[reader], members);
    return std::pair(int64_t{0}, speak ? bytes : 0);
  };
}

void GpuRun::exchange(Communicator &participant, const Exchange &exchange, const Communicator::Reader &read) const {
  try {
    participant.exchange(exchange, read);
  } catch (const ExchangeFailure &failure) {
    throw Error(ErrorKind::custom_call, failure.what());
  }
}

NcclGroup::Look GpuRun::look_at(const Members &members) const {
  return [this, &members, since = Clock::now()] { spanning_->check_on_devices(members, since, false); };
}

/// Within a handler of an error of NCCL: throws what is known of the processes, if one of them is the cause, else that.
void GpuRun::rethrow_explained(const Members &members) const {
  Time begin = Clock::now();
  while (Clock::now() - begin < kExplained) {
    spanning_->check(members, begin);
    std::this_thread::sleep_for(kLook);
  }
  throw;
}

void GpuRun::begin(Communicator &participant) {
  for (const Members &members : joins_)
    if (std::ranges::find(members, participant.participant()) != members.end())
      join(participant, members, *groups_.at(members));
}

/// One participant of each process connects all GPUs of its own; nobody goes on before all are connected.
void GpuRun::join(Communicator &participant, const Members &members, NcclGroup &group) {
  const NcclLibrary &nccl = NcclLibrary::instance();
  Invitation mine{.version = own_version()}, first;
  if (members.front() == participant.participant())
    nccl.check(nccl.unique_id(&mine.id), "make an id for " + std::to_string(members.size()) + " GPUs");
  bool connects = speaks(participant.participant(), members);
  std::string differs;
  exchange(participant, {kInvitation, members, &mine, sizeof mine, needs(members, sizeof mine)}, [&](auto parts) {
    for (size_t i = 0; i < parts.size() && connects; ++i) {
      if (!speaks(members[i], members))
        continue;
      const auto &other = *static_cast<const Invitation *>(parts[i]);
      if (i == 0)
        first = other;
      if (other.version != mine.version)
        differs = "process " + std::to_string(spanning_->process_of(members[i])) + " has NCCL " +
                  version_text(other.version) + ", and this one has " + version_text(mine.version) +
                  ": install the same version for all processes";
    }
  });
  if (!differs.empty())
    throw Error(ErrorKind::device, differs);
  try {
    if (connects)
      group.join(first.id, look_at(members));
    spanning_->go_on();
  } catch (const ExchangeFailure &failure) {
    throw Error(ErrorKind::custom_call, failure.what());
  } catch (const Error &) {
    try {
      rethrow_explained(members);
    } catch (const ExchangeFailure &failure) {
      throw Error(ErrorKind::custom_call, failure.what());
    }
  }
  exchange(participant, {kJoined, members, &mine, 1, needs(members, 1)}, [](auto) {});
}

void GpuRun::give(const Gpu &gpu, const Members &members, int64_t participant, const std::string &what,
                  const NcclGroup::Body &body) {
  NcclGroup &group = *groups_.at(members);
  auto rank = static_cast<size_t>(std::ranges::find(members, participant) - members.begin());
  if (!group.spans_processes())
    return group.give(rank, what, [] {}, body);
  Given given{gpu.record(), nullptr, members, 0, std::nullopt};
  try {
    group.give(rank, what, look_at(members), body);
  } catch (const Error &) {
    check_watch();
    rethrow_explained(members);
  }
  given.done = gpu.record();
  std::lock_guard lock(mutex_);
  given.number = counts_[{participant, members}]++;
  given_[participant].push_back(std::move(given));
}

void GpuRun::finish(Communicator &participant, const disc::Event *done) {
  if (!watch_.joinable())
    return;
  if (done)
    done->wait();
  check_watch();
  Members all(gpus_.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<int64_t>(i);
  char nothing = 0;
  exchange(participant, {kEnd, all, &nothing, 1, needs(all, 1)}, [](auto) {});
}

void GpuRun::check() {
  for (const auto &[members, group] : groups_)
    NcclLibrary::instance().check(group->async_error(), "exchange arrays between GPUs");
}

void GpuRun::check_watch() {
  std::lock_guard lock(mutex_);
  if (failure_)
    std::rethrow_exception(failure_);
}

// ---- the watch ------------------------------------------------------------------------------------------------------

/// Whether a GPU of this process has been given its part of a collective, and has not come to it.
bool GpuRun::is_late_here(const Given &given) const {
  return std::ranges::any_of(given_, [&](const auto &entry) {
    const std::deque<Given> &queue = entry.second;
    auto same = [&](const Given &other) { return other.number == given.number && other.members == given.members; };
    auto found = std::ranges::find_if(queue, same);
    return found != queue.end() && (found != queue.begin() || !found->before->is_done());
  });
}

/// Throws ExchangeFailure and Error for what has failed since, or waits for too long.
void GpuRun::look() {
  spanning_->check();
  bool waits = false;
  for (auto &[participant, queue] : given_) {
    while (!queue.empty() && queue.front().done->is_done())
      queue.pop_front();
    if (queue.empty() || !queue.front().before->is_done())
      continue;
    Given &given = queue.front();
    if (!given.begun)
      given.begun = Clock::now();
    spanning_->check_on_devices(given.members, *given.begun, is_late_here(given));
    waits = true;
  }
  if (!waits)
    spanning_->go_on();
  for (const auto &[members, group] : groups_) {
    NcclStatus found = group->async_error();
    if (!nccl_failed(found))
      continue;
    if (!failed_)
      failed_ = Clock::now();
    spanning_->check(members, *failed_);
    if (Clock::now() - *failed_ > kExplained)
      NcclLibrary::instance().check(found, "exchange arrays between GPUs");
  }
}

void GpuRun::watch() {
  std::unique_lock lock(mutex_);
  std::string why;
  while (why.empty()) {
    if (changed_.wait_for(lock, kLook, [&] { return is_over_; }))
      return;
    try {
      look();
    } catch (const ExchangeFailure &failure) {
      why = failure.what();
      failure_ = std::make_exception_ptr(Error(ErrorKind::custom_call, why));
    } catch (const std::exception &error) {
      why = error.what();
      failure_ = std::current_exception();
    }
  }
  lock.unlock();
  spanning_->fail(why);
  abort_groups();
}

void GpuRun::stop_watch() noexcept {
  {
    std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (watch_.joinable())
    watch_.join();
}

/// Aborting is said not to wait for other processes; should it do so, it is left alone after a while.
void GpuRun::abort_groups() noexcept {
  std::vector<std::shared_ptr<NcclGroup>> groups;
  for (const auto &[members, group] : groups_)
    groups.push_back(group);
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> is_done = done->get_future();
  auto abort = [groups, done] {
    for (const std::shared_ptr<NcclGroup> &group : groups)
      group->abort();
    done->set_value();
  };
  try {
    std::thread(abort).detach();
  } catch (const std::system_error &) { // there are no more threads
    abort();
  }
  is_done.wait_for(kAborted);
}

void GpuRun::abort() noexcept {
  stop_watch();
  abort_groups();
  for (const auto &[members, group] : groups_) {
    forget_group(group);
    if (kept_)
      std::erase_if(*kept_, [&](const auto &entry) { return entry.second == group; });
  }
}

int64_t GpuRun::forget() {
  std::lock_guard lock(run_mutex);
  return forget_groups();
}

GpuParticipant::GpuParticipant(GpuRun &run, Communicator &communicator, const DiscRuntime &plain)
    : run_(run), communicator_(communicator), runtime_(plain) {
  run.begin(communicator);
  participant_of_thread = this;
}

GpuParticipant::~GpuParticipant() { participant_of_thread = nullptr; }

const GpuParticipant *GpuParticipant::current() { return participant_of_thread; }

void read_in_run(const Gpu &gpu, void *to, Address from, size_t bytes) {
  const GpuParticipant *here = GpuParticipant::current();
  if (!here)
    return gpu.read(to, from, bytes);
  std::string found(bytes, '\0');
  gpu.read(found.data(), from, bytes);
  here->run().check_watch();
  found.copy(static_cast<char *>(to), bytes);
}

} // namespace disc::cuda
