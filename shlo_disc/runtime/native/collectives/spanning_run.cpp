// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "spanning_run.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>

namespace disc {

namespace {

constexpr size_t kHeaderBytes = 64; // elements behind it are aligned
constexpr std::chrono::milliseconds kGrace(200); // for what a process has sent before it went

} // namespace

class SpanningRun::Connection : public Communicator {
public:
  Connection(SpanningRun &run, int64_t participant)
      : run_(run), participant_(participant), here_(run.here_.connect(participant)) {}

  int64_t participant() const override { return participant_; }
  void exchange(const Exchange &exchange, const Reader &read) override;

private:
  using Messages = std::vector<std::unique_ptr<Message>>;

  /// What comes from another member.
  struct Passing {
    size_t member;  // its position in the group
    int64_t begin;  // of the bytes of its array
    size_t message; // the number of the message
  };

  int64_t tag(int64_t owner, int64_t reader) const {
    auto device = [&](int64_t participant) { return run_.places_[static_cast<size_t>(participant)].device; };
    return device(owner) * kDevices + device(reader);
  }

  void send(const Exchange &exchange, size_t me, Messages &messages) const;
  std::vector<Passing> receive(const Exchange &exchange, size_t me, Messages &messages) const;
  Header header(const Exchange &exchange) const {
    return {run_.program_, run_.number_, exchange.site, exchange.bytes};
  }

  SpanningRun &run_;
  int64_t participant_;
  std::unique_ptr<Communicator> here_;
};

SpanningRun::SpanningRun(Transport &transport, std::vector<Place> places, uint64_t program, uint64_t number,
                         std::chrono::seconds timeout)
    : transport_(transport), places_(std::move(places)), here_(static_cast<int64_t>(places_.size()), count_here()),
      program_(program), number_(number), timeout_(timeout) {}

int64_t SpanningRun::count_here() const {
  return std::ranges::count(places_, transport_.process(), &Place::process);
}

void SpanningRun::fail(const std::string &why) {
  here_.fail(why);
  transport_.fail(why);
}

std::unique_ptr<Communicator> SpanningRun::connect(int64_t participant) {
  return std::make_unique<Connection>(*this, participant);
}

void SpanningRun::check() {
  here_.check();
  transport_.check();
}

void SpanningRun::fail_late(const std::string &processes) const {
  throw ExchangeFailure("a collective has waited for " + processes + " for " + std::to_string(timeout_.count()) +
                        " seconds");
}

void SpanningRun::check_process(int64_t process, Time since) {
  check();
  auto waited = std::chrono::steady_clock::now() - since;
  if (waited > kGrace)
    transport_.check_present(process);
  if (waited > timeout_)
    fail_late("process " + std::to_string(process));
}

void SpanningRun::check(std::span<const int64_t> awaited, Time since) {
  check();
  for (int64_t participant : awaited)
    if (!is_here(participant))
      check_process(process_of(participant), since);
}

void SpanningRun::check_on_devices(std::span<const int64_t> awaited, Time since, bool is_late) {
  check();
  auto waited = std::chrono::steady_clock::now() - since;
  std::set<int64_t> others;
  for (int64_t participant : awaited)
    if (!is_here(participant))
      others.insert(process_of(participant));
  if (waited > kGrace)
    for (int64_t process : others)
      transport_.check_present(process);
  if (waited > timeout_ / 2 && !is_late)
    transport_.set_waiting(true);
  if (waited <= timeout_)
    return;
  if (is_late)
    fail_late("process " + std::to_string(transport_.process()));
  bool all = waited > 2 * timeout_; // of them wait: for something else, and not for this long
  std::string late;
  for (int64_t process : others)
    if (all || !transport_.is_waiting(process))
      late += (late.empty() ? "process " : ", process ") + std::to_string(process);
  if (!late.empty())
    fail_late(late);
}

/// Polls, as the functions of MPI that wait do, but leaves the processor to others.
void SpanningRun::wait_for(std::span<const std::unique_ptr<Message>> messages) {
  constexpr int64_t eager = 2000, look = 64;
  constexpr std::chrono::microseconds rest(50);
  auto begin = std::chrono::steady_clock::now();
  size_t done = 0;
  for (int64_t turn = 1;; ++turn) {
    while (done < messages.size() && messages[done]->is_done())
      ++done;
    if (done == messages.size())
      return;
    if (turn % look == 0)
      check_process(messages[done]->process, begin);
    if (turn < eager)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(rest);
  }
}

void SpanningRun::Connection::send(const Exchange &exchange, size_t me, Messages &messages) const {
  Header head = header(exchange);
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    int64_t reader = exchange.members[i];
    auto [begin, end] = run_.is_here(reader) ? std::pair<int64_t, int64_t>() : exchange.needs(me, i);
    if (begin == end)
      continue;
    auto bytes = static_cast<size_t>(end - begin);
    auto *from = static_cast<const char *>(exchange.mine) + begin;
    auto fill = [&](char *to) {
      std::memset(to, 0, kHeaderBytes);
      std::memcpy(to, &head, sizeof head);
      std::memcpy(to + kHeaderBytes, from, bytes);
    };
    int64_t process = run_.places_[static_cast<size_t>(reader)].process;
    messages.push_back(run_.transport_.send(process, tag(participant_, reader), kHeaderBytes + bytes, fill));
  }
}

std::vector<SpanningRun::Connection::Passing>
SpanningRun::Connection::receive(const Exchange &exchange, size_t me, Messages &messages) const {
  std::vector<Passing> passing;
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    int64_t owner = exchange.members[i];
    auto [begin, end] = run_.is_here(owner) ? std::pair<int64_t, int64_t>() : exchange.needs(i, me);
    if (begin == end)
      continue;
    passing.push_back({i, begin, messages.size()});
    int64_t process = run_.places_[static_cast<size_t>(owner)].process;
    size_t bytes = kHeaderBytes + static_cast<size_t>(end - begin);
    messages.push_back(run_.transport_.receive(process, tag(owner, participant_), bytes));
  }
  return passing;
}

/// All messages are under way before the first wait, and nobody waits for a participant of its own process before its
/// messages are done: processes do not wait for each other in a circle.
void SpanningRun::Connection::exchange(const Exchange &exchange, const Reader &read) {
  std::vector<int64_t> members_here;
  std::vector<size_t> positions_here;
  size_t me = 0;
  for (size_t i = 0; i < exchange.members.size(); ++i) {
    int64_t member = exchange.members[i];
    if (member < 0 || member >= static_cast<int64_t>(run_.places_.size()))
      throw ExchangeFailure("a collective is for participant " + std::to_string(member) + " of " +
                            std::to_string(run_.places_.size()));
    if (member == participant_)
      me = i;
    if (!run_.is_here(member))
      continue;
    members_here.push_back(member);
    positions_here.push_back(i);
  }
  Messages messages;
  std::vector<const void *> parts(exchange.members.size());
  run_.transport_.check();
  std::vector<Passing> received = receive(exchange, me, messages);
  send(exchange, me, messages);
  run_.wait_for(messages);
  Header expected = header(exchange);
  for (const Passing &passing : received) {
    const char *contents = messages[passing.message]->contents();
    Header found;
    std::memcpy(&found, contents, sizeof found);
    if (found != expected)
      throw ExchangeFailure("processes are at different collectives: they run different programs, or the same ones in "
                            "another order");
    parts[passing.member] = contents + kHeaderBytes - passing.begin;
  }
  here_->exchange({exchange.site, members_here, exchange.mine, exchange.bytes, {}},
                  [&](std::span<const void *const> parts_here) {
                    for (size_t i = 0; i < parts_here.size(); ++i)
                      parts[positions_here[i]] = parts_here[i];
                    read(parts);
                  });
}

} // namespace disc
