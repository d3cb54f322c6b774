// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Participants that are threads of this process: they meet, and read each other's memory.
#pragma once

#include "core/communicator.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace disc {

/// Where the participants of one run meet that are in this process. Thread-safe; each participant is one thread.
///
/// Nobody waits in vain: when every participant waits or has ended, and none of the waiting can go on, all fail.
class Rendezvous : public Run {
public:
  /// participants: of the run; here: those of them that are in this process.
  Rendezvous(int64_t participants, int64_t here) : participants_(participants), here_(here) {}

  std::unique_ptr<Communicator> connect(int64_t participant) override;
  void leave() override;
  void fail(const std::string &why) override;

  /// Throws after a failure.
  void check();

private:
  class Connection;

  /// Members of a group at one place of the program.
  struct Meeting {
    std::vector<const void *> parts; // by position in the group; null until the member is there
    int64_t bytes = 0;
    size_t arrived = 0;
    size_t read = 0;
  };
  using Key = std::pair<int64_t, std::vector<int64_t>>;

  void exchange(int64_t participant, const Exchange &exchange, const Communicator::Reader &read);
  std::shared_ptr<Meeting> arrive(const Key &key, size_t position, const void *mine, int64_t bytes);
  void check_members(int64_t participant, std::span<const int64_t> members) const;
  void check_progress();
  void set_failure(const std::string &why);
  void throw_failure() const;

  const int64_t participants_, here_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::shared_ptr<Meeting>> meetings_; // those that somebody has still to come to
  int64_t waiting_ = 0;                              // participants that wait for others to come
  int64_t ended_ = 0;
  std::optional<std::string> failure_;
};

} // namespace disc
