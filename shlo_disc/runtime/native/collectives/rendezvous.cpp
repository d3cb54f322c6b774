// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rendezvous.h"

#include <algorithm>

namespace disc {

class Rendezvous::Connection : public Communicator {
public:
  Connection(Rendezvous &rendezvous, int64_t participant) : rendezvous_(rendezvous), participant_(participant) {}

  int64_t participant() const override { return participant_; }

  void exchange(const Exchange &exchange, const Reader &read) override {
    rendezvous_.exchange(participant_, exchange, read);
  }

private:
  Rendezvous &rendezvous_;
  int64_t participant_;
};

std::unique_ptr<Communicator> Rendezvous::connect(int64_t participant) {
  return std::make_unique<Connection>(*this, participant);
}

void Rendezvous::leave() {
  std::lock_guard lock(mutex_);
  ++ended_;
  check_progress();
}

void Rendezvous::fail(const std::string &why) {
  std::lock_guard lock(mutex_);
  set_failure(why);
}

void Rendezvous::check() {
  std::lock_guard lock(mutex_);
  throw_failure();
}

void Rendezvous::set_failure(const std::string &why) {
  if (!failure_)
    failure_ = why;
  changed_.notify_all();
}

void Rendezvous::throw_failure() const {
  if (failure_)
    throw ExchangeFailure(*failure_);
}

/// Whoever waits for a meeting to be complete is counted; a complete one takes its members off the count.
void Rendezvous::check_progress() {
  if (waiting_ > 0 && waiting_ + ended_ == here_)
    set_failure("participants of a collective wait for others that do not come: devices took different ways through "
                "the program");
}

void Rendezvous::check_members(int64_t participant, std::span<const int64_t> members) const {
  for (int64_t member : members)
    if (member < 0 || member >= participants_)
      throw ExchangeFailure("a collective is for participant " + std::to_string(member) + " of " +
                            std::to_string(participants_));
  if (std::find(members.begin(), members.end(), participant) == members.end())
    throw ExchangeFailure("participant " + std::to_string(participant) + " is not in the group that it is to join");
}

std::shared_ptr<Rendezvous::Meeting> Rendezvous::arrive(const Key &key, size_t position, const void *mine,
                                                        int64_t bytes) {
  std::shared_ptr<Meeting> &entry = meetings_[key];
  if (!entry) {
    entry = std::make_shared<Meeting>();
    entry->parts.resize(key.second.size());
    entry->bytes = bytes;
  }
  std::shared_ptr<Meeting> meeting = entry;
  if (meeting->bytes != bytes)
    set_failure("participants of a collective have arrays of " + std::to_string(meeting->bytes) + " and of " +
                std::to_string(bytes) + " bytes");
  throw_failure();
  meeting->parts[position] = mine;
  if (++meeting->arrived == key.second.size()) {
    waiting_ -= static_cast<int64_t>(key.second.size()) - 1;
    meetings_.erase(key); // who comes again meets anew
    changed_.notify_all();
  } else {
    ++waiting_;
    check_progress();
  }
  return meeting;
}

void Rendezvous::exchange(int64_t participant, const Exchange &exchange, const Communicator::Reader &read) {
  std::span<const int64_t> members = exchange.members;
  check_members(participant, members);
  auto position = static_cast<size_t>(std::find(members.begin(), members.end(), participant) - members.begin());
  std::unique_lock lock(mutex_);
  throw_failure();
  auto meeting = arrive({exchange.site, {members.begin(), members.end()}}, position, exchange.mine, exchange.bytes);
  changed_.wait(lock, [&] { return failure_ || meeting->arrived == members.size(); });
  if (meeting->arrived < members.size())
    throw_failure();
  // From here on every member reads, also after a failure: nobody's memory may go before.
  lock.unlock();
  read(meeting->parts);
  lock.lock();
  if (++meeting->read == members.size())
    changed_.notify_all();
  changed_.wait(lock, [&] { return meeting->read == members.size(); });
}

} // namespace disc
