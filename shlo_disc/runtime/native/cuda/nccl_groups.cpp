// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "nccl_groups.h"

#include <map>

namespace disc::cuda {

namespace {

/// Beyond so many, all are destroyed: each takes memory of its GPUs.
constexpr size_t kMostGroups = 64;

using Groups = std::map<std::vector<int>, std::shared_ptr<NcclGroup>>; // by the numbers of the GPUs

/// Lives as long as the process: at its end, NCCL may be gone already.
Groups &groups() {
  static auto *found = new Groups();
  return *found;
}

} // namespace

NcclGroup::NcclGroup(const NcclLibrary &library, Gpus gpus) : library_(library), gpus_(std::move(gpus)) {
  std::vector<int> ordinals;
  for (const std::shared_ptr<Gpu> &gpu : gpus_)
    ordinals.push_back(gpu->ordinal());
  comms_.resize(ordinals.size());
  gpus_.front()->within([&] {
    library_.check(library_.init_all(comms_.data(), static_cast<int>(ordinals.size()), ordinals.data()),
                   "connect " + std::to_string(ordinals.size()) + " GPUs");
  });
}

NcclGroup::~NcclGroup() {
  for (size_t rank = 0; rank < comms_.size(); ++rank) {
    try {
      gpus_[rank]->wait();
      gpus_[rank]->within([&] { library_.destroy(comms_[rank]); });
    } catch (const Error &) { // the GPU is lost, and what it had with it
    }
  }
}

NcclStatus NcclGroup::async_error() const {
  for (NcclComm comm : comms_) {
    NcclStatus found = kNcclSuccess;
    NcclStatus status = library_.async_error(comm, &found);
    if (status != kNcclSuccess || (found != kNcclSuccess && found != kNcclInProgress))
      return status != kNcclSuccess ? status : found;
  }
  return kNcclSuccess;
}

void NcclGroup::abort() noexcept {
  for (size_t rank = 0; rank < comms_.size(); ++rank) {
    try {
      gpus_[rank]->within([&] { library_.abort(comms_[rank]); });
    } catch (const Error &) { // as above
    }
  }
  comms_.clear();
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

void forget_group(const std::shared_ptr<NcclGroup> &group) {
  std::erase_if(groups(), [&](const auto &entry) { return entry.second == group; });
}

int64_t forget_groups() {
  auto count = static_cast<int64_t>(groups().size());
  groups().clear();
  return count;
}

} // namespace disc::cuda
