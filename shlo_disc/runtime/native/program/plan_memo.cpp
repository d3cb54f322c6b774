// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan.h"

#include <algorithm>

namespace disc {

int64_t Plan::memory() const {
  constexpr size_t bookkeeping = 256; // list and hash nodes, reference counts
  return static_cast<int64_t>((symbols.size() + words.size() + result_bytes.size()) * sizeof(int64_t) + bookkeeping);
}

/// FNV-1a over whole words, with the high half folded in so that small sizes spread.
size_t PlanMemo::Hash::operator()(std::span<const int64_t> key) const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t value : key) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool PlanMemo::Equal::operator()(std::span<const int64_t> a, std::span<const int64_t> b) const {
  return std::ranges::equal(a, b);
}

std::shared_ptr<const Plan> PlanMemo::find(std::span<const int64_t> symbols) {
  std::lock_guard lock(mutex_);
  auto found = index_.find(symbols);
  if (found == index_.end())
    return nullptr;
  if (found->second != order_.begin())
    order_.splice(order_.begin(), order_, found->second);
  return order_.front();
}

void PlanMemo::insert(std::shared_ptr<const Plan> plan) {
  std::lock_guard lock(mutex_);
  if (plan->memory() > byte_limit_ || index_.contains(plan->symbols))
    return;
  bytes_ += plan->memory();
  order_.push_front(std::move(plan));
  index_.emplace(order_.front()->symbols, order_.begin());
  while (bytes_ > byte_limit_) {
    const Plan &oldest = *order_.back();
    bytes_ -= oldest.memory();
    index_.erase(std::span<const int64_t>(oldest.symbols));
    order_.pop_back();
  }
}

int64_t PlanMemo::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(order_.size());
}

std::vector<std::vector<int64_t>> PlanMemo::symbols() const {
  std::lock_guard lock(mutex_);
  std::vector<std::vector<int64_t>> found;
  for (const auto &plan : order_)
    found.push_back(plan->symbols);
  return found;
}

int64_t PlanMemo::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

} // namespace disc
