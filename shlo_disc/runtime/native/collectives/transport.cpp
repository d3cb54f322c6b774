// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport.h"

#include <mutex>
#include <set>

namespace disc {

namespace {

struct Connections {
  std::mutex mutex;
  std::set<Transport *> open;
};

Connections &connections() {
  static auto *all = new Connections; // clients may outlive static destructors
  return *all;
}

} // namespace

bool ProcessStates::fail(int64_t process, const std::string &why) {
  if (failure_)
    return false;
  failure_ = "process " + std::to_string(process) + ": " + why;
  return true;
}

void ProcessStates::check() const {
  if (failure_)
    throw ExchangeFailure("the exchange between processes has failed, in " + *failure_);
}

void ProcessStates::set_gone(int64_t process, const std::string &how) {
  if (process < 0 || process >= static_cast<int64_t>(gone_.size()))
    return;
  std::string &known = gone_[static_cast<size_t>(process)];
  if (known.empty())
    known = how;
}

void ProcessStates::check_present(int64_t process) const {
  const std::string &how = gone_[static_cast<size_t>(process)];
  if (!how.empty())
    throw ExchangeFailure("a collective waits for process " + std::to_string(process) + ", which " + how);
}

void ProcessStates::set_waiting(int64_t process, bool waits) { waiting_[static_cast<size_t>(process)] = waits; }

void Transport::close_all() {
  std::lock_guard lock(connections().mutex);
  for (Transport *transport : connections().open)
    transport->close();
}

void Transport::enter() {
  std::lock_guard lock(connections().mutex);
  connections().open.insert(this);
}

void Transport::leave() {
  std::lock_guard lock(connections().mutex);
  connections().open.erase(this);
}

} // namespace disc
