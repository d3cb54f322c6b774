// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Participants on devices of several processes.
#pragma once

#include "rendezvous.h"
#include "transport.h"

#include <chrono>

namespace disc {

/// One run of a program on devices of several processes. Those of this process meet in a Rendezvous; what they need of
/// the others comes in messages, each with its sender's place in the program, so that processes that run different
/// programs are told so.
class SpanningRun : public Run {
public:
  /// Where a participant is: its process, and the number of its device there, which is below `kDevices`.
  struct Place {
    int64_t process, device;
  };
  static constexpr int64_t kDevices = 1 << 7;

  /// program, number: what the run is called, the same in all processes.
  SpanningRun(Transport &transport, std::vector<Place> places, uint64_t program, uint64_t number,
              std::chrono::seconds timeout);

  std::unique_ptr<Communicator> connect(int64_t participant) override;
  void leave() override { here_.leave(); }
  void fail(const std::string &why) override;

  int64_t participants() const { return static_cast<int64_t>(places_.size()); }
  int64_t process_of(int64_t participant) const { return places_[static_cast<size_t>(participant)].process; }
  bool is_here(int64_t participant) const { return process_of(participant) == transport_.process(); }

  using Time = std::chrono::steady_clock::time_point;

  /// Throws ExchangeFailure when a participant or another process has failed.
  void check();

  /// Looks at the processes of participants that this one waits for since a time. Throws ExchangeFailure when one has
  /// failed, has gone, or has been waited for too long.
  void check(std::span<const int64_t> awaited, Time since);

  /// The same where a device waits, not this process, so that nothing tells which of the others is late: each says
  /// that its devices wait, and those that do not say so are named. is_late: a device of this process keeps them waiting.
  void check_on_devices(std::span<const int64_t> awaited, Time since, bool is_late);

  /// That no device of this process waits any longer.
  void go_on() { transport_.set_waiting(false); }

private:
  class Connection;

  /// What a message begins with.
  struct Header {
    uint64_t program, number;
    int64_t site, bytes;
    bool operator==(const Header &) const = default;
  };

  void check_process(int64_t process, Time since);
  [[noreturn]] void fail_late(const std::string &processes) const;
  void wait_for(std::span<const std::unique_ptr<Message>> messages);

  int64_t count_here() const;

  Transport &transport_;
  const std::vector<Place> places_; // by participant
  Rendezvous here_;
  const uint64_t program_, number_;
  const std::chrono::seconds timeout_;
};

} // namespace disc
