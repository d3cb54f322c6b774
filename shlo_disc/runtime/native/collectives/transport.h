// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages between the processes of a job.
#pragma once

#include "core/communicator.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace disc {

/// Bytes under way, and the memory that they lie in. A message that is given up before it is done keeps its memory.
class Message {
public:
  explicit Message(int64_t process) : process(process) {}
  virtual ~Message() = default;

  const int64_t process; // the other one

  /// Whether the bytes have been sent, or have come. Throws ExchangeFailure.
  virtual bool is_done() = 0;

  virtual char *contents() = 0;
};

/// What is known of the processes of a job. Its users keep others out.
class ProcessStates {
public:
  explicit ProcessStates(size_t processes) : waiting_(processes), gone_(processes) {}

  /// That a process has failed; the first one counts. Tells whether this is the first.
  bool fail(int64_t process, const std::string &why);
  /// Throws ExchangeFailure when a process has failed.
  void check() const;

  /// That a process has gone, and how; the first call for it counts.
  void set_gone(int64_t process, const std::string &how);
  /// Throws ExchangeFailure when a process has gone.
  void check_present(int64_t process) const;

  /// Whether a process says that its devices wait for others.
  void set_waiting(int64_t process, bool waits);
  bool is_waiting(int64_t process) const { return waiting_[static_cast<size_t>(process)]; }

private:
  std::optional<std::string> failure_;
  std::vector<bool> waiting_;     // by process
  std::vector<std::string> gone_; // how, by process
};

/// A connection to the other processes. Thread-safe.
class Transport {
public:
  virtual ~Transport() = default;

  /// Tells the others, on all connections of this process, that it ends.
  static void close_all();

  /// This process's number; they are counted from 0.
  virtual int64_t process() const = 0;

  /// Tags are from 0 up to, but without, this number.
  static constexpr int64_t kTags = 1 << 14;

  /// Begins to send, and to receive, `bytes` bytes. Messages of one tag between two processes come in the order in
  /// which they were sent. What is to be sent is written by `fill`. Throws ExchangeFailure.
  virtual std::unique_ptr<Message> send(int64_t process, int64_t tag, size_t bytes,
                                        const std::function<void(char *)> &fill) = 0;
  virtual std::unique_ptr<Message> receive(int64_t process, int64_t tag, size_t bytes) = 0;

  /// Tells all processes that this one has failed; the first call counts. There is no more exchange between them.
  virtual void fail(const std::string &why) noexcept = 0;

  /// Throws ExchangeFailure when this or another process has failed.
  virtual void check() = 0;

  /// Says that a process has gone, and how. What it has sent before may still come.
  virtual void set_gone(int64_t process, const std::string &how) = 0;

  /// Throws ExchangeFailure when a process has gone.
  virtual void check_present(int64_t process) = 0;

  /// Tells the others that the devices of this process wait for theirs, or no longer do: who is waited for too long is
  /// who does not wait.
  virtual void set_waiting(bool waits) noexcept = 0;

  /// Whether a process has told so.
  virtual bool is_waiting(int64_t process) = 0;

protected:
  /// Tells the others that this process ends, if it has not told them.
  virtual void close() noexcept = 0;

  /// `close_all` closes this one, from when it is connected and until it is left.
  void enter();
  void leave();
};

} // namespace disc
