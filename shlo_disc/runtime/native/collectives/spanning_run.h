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

private:
  class Connection;

  /// What a message begins with.
  struct Header {
    uint64_t program, number;
    int64_t site, bytes;
    bool operator==(const Header &) const = default;
  };

  bool is_here(int64_t participant) const;
  void wait_for(std::span<const std::unique_ptr<Message>> messages);

  int64_t count_here() const;

  Transport &transport_;
  const std::vector<Place> places_; // by participant
  Rendezvous here_;
  const uint64_t program_, number_;
  const std::chrono::seconds timeout_;
};

} // namespace disc
