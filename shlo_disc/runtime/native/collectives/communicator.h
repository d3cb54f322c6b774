// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the participants of a program on several devices need of each other. A transport implements `Communicator`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace disc {

/// An exchange that did not come about: a participant has failed, or waits for one that never comes.
class ExchangeFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One participant's connection to the others of its run. Participants have numbers from 0 on.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// This participant's number.
  virtual int64_t participant() const = 0;

  /// Gets the addresses of what all members of a group lend, in the order of the members.
  using Reader = std::function<void(std::span<const void *const> parts)>;

  /// Lends `bytes` bytes at `mine` to the members of a group, this participant among them, and calls `read` when all of
  /// them have come to `site`, a place of the program. Returns when all have read. Throws ExchangeFailure.
  virtual void exchange(int64_t site, std::span<const int64_t> members, const void *mine, int64_t bytes,
                        const Reader &read) = 0;
};

} // namespace disc
