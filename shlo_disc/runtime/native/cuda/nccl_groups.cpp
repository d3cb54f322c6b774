// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nccl_groups.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace disc::cuda {

namespace {

/// Beyond so many, all are destroyed: each takes memory of its GPUs.
constexpr size_t kMostGroups = 64;

constexpr std::chrono::microseconds kRest(50); // from one look to the next
constexpr std::chrono::seconds kFarewell(5); // for other processes to be done as well

using Groups = std::map<std::vector<int>, std::shared_ptr<NcclGroup>>; // by the numbers of the GPUs

/// Lives as long as the process: at its end, NCCL may be gone already.
Groups &groups() {
  static auto *found = new Groups();
  return *found;
}

} // namespace

NcclGroup::NcclGroup(const NcclLibrary &library, Gpus gpus) : library_(library) {
  for (std::shared_ptr<Gpu> &gpu : gpus) {
    ranks_.push_back(gpu ? std::make_unique<Rank>() : nullptr);
    if (gpu)
      ranks_.back()->gpu = std::move(gpu);
    else
      spans_processes_ = true;
  }
  if (spans_processes_)
    return;
  std::vector<int> ordinals;
  for (const auto &rank : ranks_)
    ordinals.push_back(rank->gpu->ordinal());
  std::vector<NcclComm> comms(ordinals.size());
  ranks_.front()->gpu->within([&] {
    library_.check(library_.init_all(comms.data(), static_cast<int>(ordinals.size()), ordinals.data()),
                   "connect " + std::to_string(ordinals.size()) + " GPUs");
  });
  for (size_t rank = 0; rank < comms.size(); ++rank)
    ranks_[rank]->comm = comms[rank];
  is_joined_ = true;
}

/// Calls visit(rank) for each rank of this process that is connected, with its GPU's context.
template <typename Visit> void NcclGroup::for_each_here(const Visit &visit) noexcept {
  for (const auto &rank : ranks_) {
    if (!rank || !rank->comm)
      continue;
    try {
      rank->gpu->within([&] { visit(*rank); });
    } catch (const Error &) { // the GPU is lost, and what it had with it
    }
  }
}

NcclGroup::~NcclGroup() {
  for_each_here([](Rank &rank) { rank.gpu->wait(); });
  for_each_here([&](Rank &rank) { library_.destroy(std::exchange(rank.comm, nullptr)); });
}

void NcclGroup::begin_end() noexcept {
  for_each_here([](Rank &rank) { rank.gpu->wait(); });
  for_each_here([&](Rank &rank) { library_.finalize(rank.comm); });
}

void NcclGroup::wait_for_end(std::chrono::steady_clock::time_point limit) noexcept {
  for_each_here([&](Rank &rank) {
    NcclStatus status = state_of(rank);
    for (; status == kNcclInProgress && std::chrono::steady_clock::now() < limit; status = state_of(rank))
      std::this_thread::sleep_for(kRest);
    if (status != kNcclSuccess)
      library_.abort(std::exchange(rank.comm, nullptr));
  });
}

/// All ranks of this process are begun together, for each waits for all. Nobody aborts one that is not begun yet.
NcclStatus NcclGroup::begin_ranks(const NcclId &id) {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto &rank : ranks_)
    if (rank)
      locks.emplace_back(rank->mutex);
  auto count = static_cast<int>(ranks_.size());
  return together(library_, [&] {
    NcclStatus status = kNcclSuccess;
    for (size_t number = 0; number < ranks_.size() && !nccl_failed(status); ++number)
      if (Rank *rank = ranks_[number].get())
        rank->gpu->within([&] {
          NcclConfig config;
          status = library_.init_rank(&rank->comm, count, id, static_cast<int>(number), &config);
        });
    return status;
  });
}

void NcclGroup::join(const NcclId &id, const Look &look) {
  std::string what = "connect " + std::to_string(ranks_.size()) + " GPUs of several processes";
  NcclStatus status = begin_ranks(id);
  for (const auto &rank : ranks_)
    if (rank)
      complete(*rank, status, what, look);
  is_joined_ = true;
}

NcclStatus NcclGroup::state_of(Rank &rank) {
  NcclStatus found = kNcclSuccess;
  NcclStatus status = library_.async_error(rank.comm, &found);
  return status != kNcclSuccess ? status : found;
}

/// Until then, nothing may be said of the work in the stream: it may not be there yet.
void NcclGroup::complete(Rank &rank, NcclStatus status, const std::string &what, const Look &look) {
  while (status == kNcclInProgress) {
    look();
    std::this_thread::sleep_for(kRest);
    std::lock_guard lock(rank.mutex);
    if (!rank.comm)
      throw Error(ErrorKind::device, "could not " + what + ": the exchange between GPUs has been ended");
    status = state_of(rank);
  }
  library_.check(status, what);
}

void NcclGroup::give(size_t number, const std::string &what, const Look &look, const Body &body) {
  Rank &rank = *ranks_[number];
  rank.gpu->within([&] {
    NcclStatus status = kNcclSuccess;
    {
      std::lock_guard lock(rank.mutex);
      if (!rank.comm)
        throw Error(ErrorKind::device, "could not " + what + ": the exchange between GPUs has been ended");
      status = body(rank.comm);
    }
    complete(rank, status, what, look);
  });
}

NcclStatus NcclGroup::async_error() {
  for (const auto &rank : ranks_) {
    if (!rank)
      continue;
    std::lock_guard lock(rank->mutex);
    if (!rank->comm)
      continue;
    if (NcclStatus found = state_of(*rank); nccl_failed(found))
      return found;
  }
  return kNcclSuccess;
}

void NcclGroup::abort() noexcept {
  for (const auto &rank : ranks_) {
    if (!rank)
      continue;
    NcclComm comm = nullptr;
    {
      std::lock_guard lock(rank->mutex); // not while NCCL aborts: nobody else uses it then
      comm = std::exchange(rank->comm, nullptr);
    }
    if (!comm)
      continue;
    try {
      rank->gpu->within([&] { library_.abort(comm); });
    } catch (const Error &) { // as above
    }
  }
}

std::shared_ptr<NcclGroup> group_of(const Gpus &gpus) {
  std::vector<int> ordinals;
  for (const std::shared_ptr<Gpu> &gpu : gpus)
    ordinals.push_back(gpu->ordinal());
  if (auto found = groups().find(ordinals); found != groups().end())
    return found->second;
  if (groups().size() >= kMostGroups)
    groups().clear();
  auto made = std::make_shared<NcclGroup>(NcclLibrary::instance(), gpus);
  groups().emplace(std::move(ordinals), made);
  return made;
}

void close_groups(SpanningGroups &groups) noexcept {
  auto limit = std::chrono::steady_clock::now() + kFarewell;
  for (const auto &[devices, group] : groups)
    group->begin_end();
  for (const auto &[devices, group] : groups)
    group->wait_for_end(limit);
  groups.clear();
}

void forget_group(const std::shared_ptr<NcclGroup> &group) {
  std::erase_if(groups(), [&](const auto &entry) { return entry.second == group; });
}

int64_t forget_groups() {
  auto count = static_cast<int64_t>(groups().size());
  groups().clear();
  return count;
}

} // namespace disc::cuda
