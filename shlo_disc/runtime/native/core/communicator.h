// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the participants of a program on several devices need of each other. A transport implements `Communicator`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace disc {

/// An exchange that did not come about: a participant has failed, or waits for one that never comes.
class ExchangeFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which bytes [first, second) of one member's array another one reads, both by their positions in the group.
using Needs = std::function<std::pair<int64_t, int64_t>(size_t owner, size_t reader)>;

/// What one participant brings to an exchange.
struct Exchange {
  int64_t site;                     // the place of the program
  std::span<const int64_t> members; // of the group, this participant among them
  const void *mine;                 // its array
  int64_t bytes;                    // of the array of each member
  Needs needs;
};

/// One participant's connection to the others of its run. Participants have numbers from 0 on.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// This participant's number.
  virtual int64_t participant() const = 0;

  /// Gets the addresses of the members' arrays, in the order of the members. May read of them what it has said to need.
  using Reader = std::function<void(std::span<const void *const> parts)>;

  /// Lends an array to the members of a group, and calls `read` when all of them have come to the same site. Returns
  /// when all have read. Throws ExchangeFailure.
  virtual void exchange(const Exchange &exchange, const Reader &read) = 0;
};

/// One run of a program, for those of its participants that are in this process. Thread-safe.
class Run {
public:
  virtual ~Run() = default;

  /// A participant's connection. The run has to live as long.
  virtual std::unique_ptr<Communicator> connect(int64_t participant) = 0;

  /// Says that a participant has ended.
  virtual void leave() = 0;

  /// Ends all waiting, now and later, with `why`; the first call counts.
  virtual void fail(const std::string &why) = 0;
};

} // namespace disc
