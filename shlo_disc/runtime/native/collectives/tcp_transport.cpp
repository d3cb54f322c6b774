// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tcp_transport.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <sys/random.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace disc {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMagic = 0x32304b53'4353'4944; // the version and the order of bytes are in it
constexpr size_t kSecret = 16;
constexpr std::chrono::seconds kHello(10);     // for a process that has connected to say who it is
constexpr std::chrono::seconds kFarewell(2);   // for the last messages to leave
constexpr std::chrono::milliseconds kAgain(50);

[[noreturn]] void fail(const std::string &what, int code) { throw ExchangeFailure(what + ": " + std::strerror(code)); }

/// The first thing that a process says on a connection that it has made.
struct Hello {
  uint64_t magic;
  std::array<char, kSecret> secret;
  int64_t process;
};

struct Place {
  std::string address, port, secret;

  static Place of(const std::string &text) {
    Place place;
    std::istringstream stream(text);
    if (!(stream >> place.address >> place.port >> place.secret) || place.secret.size() != 2 * kSecret)
      throw ExchangeFailure("a process has no address: '" + text + "'");
    return place;
  }
};

std::array<char, kSecret> bytes_of(const std::string &digits) {
  std::array<char, kSecret> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(std::strtol(digits.substr(2 * i, 2).c_str(), nullptr, 16));
  return bytes;
}

/// Addresses are numbers, so that no name is looked up.
struct Resolved {
  Resolved(const std::string &address, const std::string &port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (int code = getaddrinfo(address.c_str(), port.c_str(), &hints, &found); code != 0)
      throw ExchangeFailure("'" + address + "' is no address of a machine: " + gai_strerror(code));
  }
  ~Resolved() { freeaddrinfo(found); }
  Resolved(const Resolved &) = delete;

  addrinfo *found = nullptr;
};

Socket socket_for(const addrinfo &address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open())
    fail("there is no socket for the exchange between processes", errno);
  return socket;
}

/// Small messages leave at once, and a machine that is gone is noticed.
void set_options(const Socket &socket) {
  auto set = [&](int level, int name, int value) { setsockopt(socket.get(), level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

/// Whether a socket is ready before a time.
bool wait_for(const Socket &socket, short events, Clock::time_point end) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd watched{socket.get(), events, 0};
    int ready = poll(&watched, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0)
      return true;
    if (ready == 0 || errno != EINTR)
      return false;
  }
}

/// Whether all bytes have come before a time.
bool read_all(const Socket &socket, char *to, size_t bytes, Clock::time_point end) {
  while (bytes > 0) {
    if (!wait_for(socket, POLLIN, end))
      return false;
    ssize_t count = recv(socket.get(), to, bytes, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN))
      return false;
    to += std::max<ssize_t>(count, 0);
    bytes -= static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  return true;
}

/// A connection to a process that has told its place, and has answered there.
Socket connected(const Place &place, int64_t to, const Hello &hello, Clock::time_point end) {
  Resolved address(place.address, place.port);
  while (true) {
    Socket socket = socket_for(*address.found);
    char answer = 0;
    int code = 0;
    if (connect(socket.get(), address.found->ai_addr, address.found->ai_addrlen) != 0)
      code = errno;
    else if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t{sizeof hello} &&
             read_all(socket, &answer, 1, end))
      return socket;
    if (Clock::now() >= end)
      throw ExchangeFailure("process " + std::to_string(to) + " does not answer at " + place.address + " port " +
                            place.port + (code != 0 ? std::string(": ") + std::strerror(code) : std::string()));
    std::this_thread::sleep_for(kAgain);
  }
}

} // namespace

Socket &Socket::operator=(Socket &&other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0)
    ::close(release());
}

TcpListener::TcpListener(const std::string &address) : address_(address) {
  Resolved resolved(address, "0");
  socket_ = socket_for(*resolved.found);
  if (bind(socket_.get(), resolved.found->ai_addr, resolved.found->ai_addrlen) != 0 ||
      listen(socket_.get(), SOMAXCONN) != 0)
    fail("processes cannot be waited for at " + address, errno);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket_.get(), reinterpret_cast<sockaddr *>(&bound), &size);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in &>(bound).sin_port);
  std::array<unsigned char, kSecret> random;
  if (getrandom(random.data(), random.size(), 0) != ssize_t{kSecret})
    fail("there are no random numbers", errno);
  for (unsigned char byte : random) {
    static constexpr char digits[] = "0123456789abcdef";
    secret_ += {digits[byte >> 4], digits[byte & 15]};
  }
}

std::string TcpListener::place() const { return address_ + " " + std::to_string(port_) + " " + secret_; }

// ---- messages -------------------------------------------------------------------------------------------------------

class TcpTransport::TcpMessage : public Message {
public:
  TcpMessage(TcpTransport &transport, int64_t process, std::shared_ptr<Body> body)
      : Message(process), transport_(transport), body_(std::move(body)) {}

  bool is_done() override {
    if (!body_->is_done)
      transport_.progress();
    return body_->is_done;
  }

  char *contents() override { return body_->contents.get(); }

private:
  TcpTransport &transport_;
  std::shared_ptr<Body> body_;
};

std::shared_ptr<TcpTransport::Body> TcpTransport::body_of(int64_t tag, size_t bytes) {
  auto body = std::make_shared<Body>();
  body->header = {tag, bytes};
  body->contents.reset(new char[bytes]);
  return body;
}

std::unique_ptr<Message> TcpTransport::send(int64_t process, int64_t tag, size_t bytes,
                                            const std::function<void(char *)> &fill) {
  auto body = body_of(tag, bytes);
  fill(body->contents.get());
  std::lock_guard lock(mutex_);
  Peer &peer = peers_[static_cast<size_t>(process)];
  peer.sending.push_back(body);
  write(process, peer);
  return std::make_unique<TcpMessage>(*this, process, std::move(body));
}

std::unique_ptr<Message> TcpTransport::receive(int64_t process, int64_t tag, size_t bytes) {
  std::lock_guard lock(mutex_);
  Peer &peer = peers_[static_cast<size_t>(process)];
  Bodies &come = peer.come[tag];
  std::shared_ptr<Body> body;
  if (come.empty()) {
    body = body_of(tag, bytes);
    peer.expected[tag].push_back(body);
  } else {
    body = std::move(come.front());
    come.pop_front();
    if (body->header.bytes != bytes)
      throw ExchangeFailure("processes are at different collectives: process " + std::to_string(process) + " sends " +
                            std::to_string(body->header.bytes) + " bytes, and " + std::to_string(bytes) + " are read");
  }
  return std::make_unique<TcpMessage>(*this, process, std::move(body));
}

/// Moves what can be moved, unless another thread does.
void TcpTransport::progress() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock)
    move_all();
}

void TcpTransport::move_all() {
  std::vector<pollfd> watched;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].socket.is_open())
      continue;
    watched.push_back({peers_[i].socket.get(), static_cast<short>(POLLIN | (peers_[i].sending.empty() ? 0 : POLLOUT)), 0});
    numbers.push_back(static_cast<int64_t>(i));
  }
  if (poll(watched.data(), watched.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < watched.size(); ++i) {
    Peer &peer = peers_[static_cast<size_t>(numbers[i])];
    if (watched[i].revents & (POLLIN | POLLHUP | POLLERR))
      read(numbers[i], peer);
    if (watched[i].revents & POLLOUT)
      write(numbers[i], peer);
  }
}

void TcpTransport::write(int64_t number, Peer &peer) {
  while (!peer.sending.empty() && peer.socket.is_open()) {
    Body &body = *peer.sending.front();
    size_t whole = sizeof body.header + body.header.bytes;
    bool in_header = peer.sent < sizeof body.header;
    const char *from = in_header ? reinterpret_cast<const char *>(&body.header) + peer.sent
                                 : body.contents.get() + (peer.sent - sizeof body.header);
    size_t left = (in_header ? sizeof body.header : whole) - peer.sent;
    ssize_t count = left == 0 ? 0 : ::send(peer.socket.get(), from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    if (count < 0)
      return lose(number, peer, std::string("cannot be reached any more: ") + std::strerror(errno));
    peer.sent += static_cast<size_t>(count);
    if (peer.sent < whole)
      continue;
    body.is_done = true;
    peer.sending.pop_front();
    peer.sent = 0;
  }
}

void TcpTransport::read(int64_t number, Peer &peer) {
  while (peer.socket.is_open()) {
    char *to = peer.coming ? peer.coming->contents.get() : reinterpret_cast<char *>(&peer.header);
    size_t whole = peer.coming ? peer.coming->header.bytes : sizeof peer.header;
    if (peer.read < whole) {
      ssize_t count = recv(peer.socket.get(), to + peer.read, whole - peer.read, MSG_DONTWAIT);
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
      if (count <= 0)
        return lose(number, peer, count == 0 ? "has ended" : std::string("is lost: ") + std::strerror(errno));
      peer.read += static_cast<size_t>(count);
    }
    if (peer.read < whole)
      continue;
    peer.read = 0;
    if (peer.coming)
      finish(number, peer);
    else
      begin(number, peer);
  }
}

/// Finds the place for a message whose header has come.
void TcpTransport::begin(int64_t number, Peer &peer) {
  Bodies &expected = peer.expected[peer.header.tag];
  if (expected.empty()) {
    peer.coming = body_of(peer.header.tag, peer.header.bytes);
    if (peer.header.tag < kTags)
      peer.come[peer.header.tag].push_back(peer.coming);
    return;
  }
  peer.coming = std::move(expected.front());
  expected.pop_front();
  if (peer.coming->header.bytes != peer.header.bytes) {
    peer.coming = body_of(peer.header.tag, peer.header.bytes); // for what comes behind it to be found
    note_failure(number, "it is at another collective than this process");
  }
}

void TcpTransport::finish(int64_t number, Peer &peer) {
  std::shared_ptr<Body> body = std::move(peer.coming);
  peer.coming.reset();
  body->is_done = true;
  if (body->header.tag >= kTags)
    take(number, Notice{body->header.tag - kTags}, std::string(body->contents.get(), body->header.bytes));
}

void TcpTransport::lose(int64_t number, Peer &peer, const std::string &how) {
  peer.socket.close();
  note_gone(number, how);
}

// ---- processes ------------------------------------------------------------------------------------------------------

/// Those with lower numbers are called, those with higher ones call.
TcpTransport::TcpTransport(TcpListener listener, int64_t process, const std::vector<std::string> &places,
                           std::chrono::milliseconds timeout)
    : Transport(process, places.size()), peers_(places.size()) {
  Clock::time_point end = Clock::now() + timeout;
  for (int64_t other = 0; other < process; ++other) {
    Place place = Place::of(places[static_cast<size_t>(other)]);
    Hello hello{kMagic, bytes_of(place.secret), process};
    peers_[static_cast<size_t>(other)].socket = connected(place, other, hello, end);
  }
  auto missing = static_cast<int64_t>(places.size()) - 1 - process;
  while (missing > 0) {
    if (!wait_for(listener.socket_, POLLIN, end))
      throw ExchangeFailure("of the job's processes, " + std::to_string(missing) + " have not connected");
    Socket socket(accept4(listener.socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello{};
    if (!socket.is_open() || !read_all(socket, reinterpret_cast<char *>(&hello), sizeof hello, Clock::now() + kHello))
      continue;
    bool is_known = hello.magic == kMagic && hello.secret == bytes_of(listener.secret_) && hello.process > process &&
                    hello.process < static_cast<int64_t>(places.size()) &&
                    !peers_[static_cast<size_t>(hello.process)].socket.is_open();
    if (!is_known || ::send(socket.get(), "", 1, MSG_NOSIGNAL) != 1) // a stranger
      continue;
    peers_[static_cast<size_t>(hello.process)].socket = std::move(socket);
    --missing;
  }
  for (Peer &peer : peers_)
    if (peer.socket.is_open())
      set_options(peer.socket);
  enter();
}

TcpTransport::~TcpTransport() {
  leave();
  close();
}

/// Says that this process ends, once all else has left.
void TcpTransport::close() noexcept {
  std::lock_guard lock(mutex_);
  if (std::exchange(is_closed_, true))
    return;
  notify(Notice::closes, "");
  Clock::time_point end = Clock::now() + kFarewell;
  auto is_leaving = [](const Peer &peer) { return peer.socket.is_open() && !peer.sending.empty(); };
  while (std::ranges::any_of(peers_, is_leaving) && Clock::now() < end) {
    try {
      move_all();
    } catch (const std::bad_alloc &) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void TcpTransport::notify(Notice notice, const std::string &text) noexcept {
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer &peer = peers_[i];
    if (!peer.socket.is_open())
      continue;
    try {
      auto body = body_of(kTags + static_cast<int64_t>(notice), text.size());
      text.copy(body->contents.get(), text.size());
      peer.sending.push_back(std::move(body));
      write(static_cast<int64_t>(i), peer);
    } catch (const std::exception &) {
      // There is no memory: the other one's waiting ends in another way.
    }
  }
}

} // namespace disc
