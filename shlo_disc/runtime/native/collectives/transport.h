// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages between the processes of a job.
#pragma once

#include "core/communicator.h"

#include <memory>
#include <mutex>
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

/// A connection to the other processes. Thread-safe.
class Transport {
public:
  virtual ~Transport() = default;

  /// Tells the others, on all connections of this process, that it ends.
  static void close_all();

  /// This process's number; they are counted from 0.
  int64_t process() const { return process_; }

  /// Tags are from 0 up to, but without, this number.
  static constexpr int64_t kTags = 1 << 14;

  /// Begins to send, and to receive, `bytes` bytes. Messages of one tag between two processes come in the order in
  /// which they were sent. What is to be sent is written by `fill`. Throws ExchangeFailure.
  virtual std::unique_ptr<Message> send(int64_t process, int64_t tag, size_t bytes,
                                        const std::function<void(char *)> &fill) = 0;
  virtual std::unique_ptr<Message> receive(int64_t process, int64_t tag, size_t bytes) = 0;

  /// Tells all processes that this one has failed; the first call counts. There is no more exchange between them.
  void fail(const std::string &why) noexcept;

  /// Throws ExchangeFailure when this or another process has failed.
  void check();

  /// Says that a process has gone, and how; the first call for it counts. What it has sent before may still come.
  void set_gone(int64_t process, const std::string &how);

  /// Throws ExchangeFailure when a process has gone.
  void check_present(int64_t process);

  /// Tells the others that the devices of this process wait for theirs, or no longer do: who is waited for too long is
  /// who does not wait.
  void set_waiting(bool waits) noexcept;

  /// Whether a process has told so.
  bool is_waiting(int64_t process);

protected:
  /// What a process tells the others of itself.
  enum class Notice : int64_t { closes, fails, waits, goes_on };

  /// This process, of so many.
  Transport(int64_t process, size_t processes) : process_(process), waiting_(processes), gone_(processes) {}

  /// Tells the others that this process ends, if it has not told them.
  virtual void close() noexcept = 0;

  /// `close_all` closes this one, from when it is connected and until it is left.
  void enter();
  void leave();

  // The rest is called with the mutex held.

  /// Sends a notice to all others that can be reached. text: why, where this process fails.
  virtual void notify(Notice notice, const std::string &text) noexcept = 0;
  /// Takes the notices that have come. Throws ExchangeFailure.
  virtual void look() = 0;
  /// Notes what a process tells of itself, or what has become of it.
  void take(int64_t process, Notice notice, const std::string &text);
  void note_failure(int64_t process, const std::string &why);
  void note_gone(int64_t process, const std::string &how);

  const int64_t process_;
  std::mutex mutex_;
  bool is_closed_ = false;

private:
  std::optional<std::string> failure_;
  std::vector<bool> waiting_;     // by process
  std::vector<std::string> gone_; // how, by process
};

} // namespace disc
