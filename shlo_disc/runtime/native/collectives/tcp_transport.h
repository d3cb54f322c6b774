// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages over TCP, between processes that know each other's addresses.
#pragma once

#include "transport.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace disc {

/// A descriptor that is closed with its owner.
class Socket {
public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor_(other.release()) {}
  Socket &operator=(Socket &&other) noexcept;
  ~Socket() { close(); }

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }
  void close();

private:
  int descriptor_;
};

/// A place where other processes find this one, and a secret that they have to know.
class TcpListener {
public:
  /// address: of this machine, as a number. The port is any. Throws ExchangeFailure.
  explicit TcpListener(const std::string &address);

  /// The address, the port and the secret, as text for the other processes.
  std::string place() const;

private:
  friend class TcpTransport;

  std::string address_, secret_;
  int port_ = 0;
  Socket socket_;
};

/// The messages are moved by whoever waits for one: there is no thread of its own.
class TcpTransport : public Transport {
public:
  /// Connects with the other processes of a job, all of which have to call it with their numbers. places: of all
  /// processes. Throws ExchangeFailure, when one does not come in time as well.
  TcpTransport(TcpListener listener, int64_t process, const std::vector<std::string> &places,
               std::chrono::milliseconds timeout);
  ~TcpTransport() override;

  std::unique_ptr<Message> send(int64_t process, int64_t tag, size_t bytes,
                                const std::function<void(char *)> &fill) override;
  std::unique_ptr<Message> receive(int64_t process, int64_t tag, size_t bytes) override;

private:
  class TcpMessage;

  /// What a message begins with. Tags from `kTags` on are notices.
  struct Header {
    int64_t tag;
    uint64_t bytes;
  };

  /// The bytes of a message, which stay while they are on their way.
  struct Body {
    Header header;
    std::unique_ptr<char[]> contents;
    std::atomic<bool> is_done = false;
  };
  using Bodies = std::deque<std::shared_ptr<Body>>;

  /// The connection with another process.
  struct Peer {
    Socket socket;
    Bodies sending;                                // the first may be on its way, by `sent` bytes
    std::unordered_map<int64_t, Bodies> expected;  // by tag: asked for, and not begun to come
    std::unordered_map<int64_t, Bodies> come;      // by tag: come, or coming, and not asked for
    std::shared_ptr<Body> coming;
    Header header{};                               // of what comes next
    size_t sent = 0, read = 0;                     // of the first message and its header, and of what comes
  };

  static std::shared_ptr<Body> body_of(int64_t tag, size_t bytes);
  void progress();
  void move_all();
  void write(int64_t number, Peer &peer);
  void read(int64_t number, Peer &peer);
  void begin(int64_t number, Peer &peer);
  void finish(int64_t number, Peer &peer);
  void lose(int64_t number, Peer &peer, const std::string &how);
  void notify(Notice notice, const std::string &text) noexcept override;
  void look() override { move_all(); }
  void close() noexcept override;

  std::vector<Peer> peers_; // by process; this one's own is not connected
};

} // namespace disc
