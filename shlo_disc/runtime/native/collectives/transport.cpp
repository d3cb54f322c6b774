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

void Transport::fail(const std::string &why) noexcept {
  std::lock_guard lock(mutex_);
  if (failure_)
    return;
  note_failure(process_, why);
  notify(Notice::fails, why);
}

void Transport::check() {
  std::lock_guard lock(mutex_);
  look();
  if (failure_)
    throw ExchangeFailure("the exchange between processes has failed, in " + *failure_);
}

void Transport::set_gone(int64_t process, const std::string &how) {
  std::lock_guard lock(mutex_);
  note_gone(process, how);
}

void Transport::check_present(int64_t process) {
  std::lock_guard lock(mutex_);
  const std::string &how = gone_[static_cast<size_t>(process)];
  if (!how.empty())
    throw ExchangeFailure("a collective waits for process " + std::to_string(process) + ", which " + how);
}

void Transport::set_waiting(bool waits) noexcept {
  std::lock_guard lock(mutex_);
  auto self = static_cast<size_t>(process_);
  if (waiting_[self] == waits)
    return;
  waiting_[self] = waits;
  notify(waits ? Notice::waits : Notice::goes_on, "");
}

bool Transport::is_waiting(int64_t process) {
  std::lock_guard lock(mutex_);
  return waiting_[static_cast<size_t>(process)];
}

void Transport::take(int64_t process, Notice notice, const std::string &text) {
  switch (notice) {
  case Notice::closes:
    return note_gone(process, "has ended");
  case Notice::fails:
    return note_failure(process, text);
  case Notice::waits:
  case Notice::goes_on:
    waiting_[static_cast<size_t>(process)] = notice == Notice::waits;
  }
}

/// The first failure counts.
void Transport::note_failure(int64_t process, const std::string &why) {
  if (!failure_)
    failure_ = "process " + std::to_string(process) + ": " + why;
}

void Transport::note_gone(int64_t process, const std::string &how) {
  if (process < 0 || process >= static_cast<int64_t>(gone_.size()))
    return;
  std::string &known = gone_[static_cast<size_t>(process)];
  if (known.empty())
    known = how;
}

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
