// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler_process.h"

#include "compiler_command.h"
#include "core/release.h"
#include "pjrt/error.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace disc::pjrt {

namespace {

constexpr std::chrono::seconds kStart(120); // for the process to import the compiler
constexpr uint64_t kMostFirst = 1 << 16;    // bytes of the first answer, which may come from another program
constexpr size_t kSaid = 1 << 16;           // bytes of standard error to look for a reason in

struct TimedOut {};

/// A descriptor that is none of the standard streams, so that it can be put in the place of one.
int above_streams(int descriptor) {
  int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
  int failure = errno;
  close(descriptor);
  errno = failure;
  return moved;
}

[[noreturn]] void fail_to_start(const std::string &command, int failure) {
  throw Failure(PJRT_Error_Code_FAILED_PRECONDITION,
                "the compiler '" + command + "' cannot be started: " + std::strerror(failure) +
                    "; SHLO_DISC_COMPILER names a Python interpreter with shlo_disc " + kRelease);
}

/// Starts a command with a socket as its input and output, and a file as its standard error. It has no other
/// descriptors and no blocked or ignored signals of this process. An error number, or 0.
int spawn(const std::string &command, int socket, int said, pid_t &process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string arguments[] = {command, "-P", "-m", "shlo_disc.pjrt.server"};
  char *argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(), nullptr};
  int failure = posix_spawnp(&process, command.c_str(), &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

std::string name_of(int status) {
  if (!WIFSIGNALED(status))
    return "exit status " + std::to_string(WEXITSTATUS(status));
  const char *name = sigabbrev_np(WTERMSIG(status));
  return name ? std::string("SIG") + name : "signal " + std::to_string(WTERMSIG(status));
}

/// The line that tells most of why a process ended: what LLVM aborts with, or the last one.
std::string telling_line(std::string_view text) {
  std::string_view last;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find("LLVM ERROR") != line.npos || line.find("Assertion") != line.npos)
      return std::string(line.substr(0, 400));
    if (line.find_first_not_of(" \t\r") != line.npos)
      last = line;
  }
  return std::string(last.substr(0, 400));
}

std::string list_of(const std::vector<int64_t> &numbers) {
  std::string text = "[";
  for (int64_t number : numbers)
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  return text + "]";
}

/// Tasks and keys are names without characters that JSON would escape.
std::string header_of(const Request &request) {
  std::vector<int64_t> sizes;
  for (std::string_view part : request.parts)
    sizes.push_back(static_cast<int64_t>(part.size()));
  for (const std::string &function : request.functions)
    sizes.push_back(static_cast<int64_t>(function.size()));
  std::string text = "{\"task\":\"" + request.task + "\",\"sizes\":" + list_of(sizes) +
                     ",\"functions\":" + std::to_string(request.functions.size()) +
                     ",\"symbols\":" + list_of(request.symbols) + ",\"key\":\"" + request.key + "\"";
  for (const auto &[name, number] : request.numbers)
    text += ",\"" + name + "\":" + std::to_string(number);
  return text + "}";
}

std::string lengths_of(uint64_t header, uint64_t data) {
  std::string bytes;
  for (uint64_t length : {header, data})
    for (int shift = 0; shift < 64; shift += 8)
      bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

/// What the compiler says, if it is an error.
void check_error(const Json &header) {
  const Json *error = header.member("error");
  const auto *parts = error ? error->get<Json::List>() : nullptr;
  if (!error)
    return;
  if (!parts || parts->size() != 2 || !(*parts)[0].get<int64_t>() || !(*parts)[1].get<std::string>())
    fail_at_answer();
  throw Failure(static_cast<PJRT_Error_Code>(*(*parts)[0].get<int64_t>()), *(*parts)[1].get<std::string>());
}

} // namespace

void fail_at_answer() { throw Failure(PJRT_Error_Code_INTERNAL, "the compiler has sent no answer of its own"); }

uint64_t read_length(std::string_view &bytes) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  bytes.remove_prefix(8);
  return length;
}

Answer read_answer(std::string_view header, std::string_view data) {
  Answer answer;
  try {
    answer.header = Json::parse(header);
  } catch (const Error &) {
    fail_at_answer();
  }
  check_error(answer.header);
  const Json *sizes = answer.header.member("sizes");
  const auto *list = sizes ? sizes->get<Json::List>() : nullptr;
  if (!list)
    fail_at_answer();
  for (const Json &size : *list) {
    const int64_t *bytes = size.get<int64_t>();
    if (!bytes || *bytes < 0 || static_cast<uint64_t>(*bytes) > data.size())
      fail_at_answer();
    answer.parts.emplace_back(data.substr(0, static_cast<size_t>(*bytes)));
    data.remove_prefix(static_cast<size_t>(*bytes));
  }
  return answer;
}

CompilerProcess::~CompilerProcess() {
  forget_if_forked();
  end();
}

Answer CompilerProcess::ask(const Request &request) {
  std::lock_guard lock(mutex_);
  forget_if_forked();
  if (socket_ >= 0 && has_ended()) // since the last answer
    end();
  if (socket_ < 0)
    start();
  pid_t asked = process_;
  try {
    return exchange(request, limit_);
  } catch (const Failure &) {
    throw;
  } catch (const Ended &) {
    throw Failure(PJRT_Error_Code_INTERNAL, "the compiler, process " + std::to_string(asked) + ", " + how_it_ended() +
                                                "; the next compile starts another");
  } catch (const TimedOut &) {
    end();
    throw Failure(PJRT_Error_Code_DEADLINE_EXCEEDED, "compiling takes more than " + std::to_string(limit_.count()) +
                                                         " s, the client's option compile_seconds");
  } catch (...) { // for want of memory: the next answer would be to this request
    end();
    throw;
  }
}

void CompilerProcess::start() {
  std::string command = compiler_command(chosen_);
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail_to_start(command, errno);
  socket_ = ends[0];
  int theirs = above_streams(ends[1]);
  said_ = above_streams(memfd_create("shlo_disc compiler", MFD_CLOEXEC));
  shown_ = 0;
  int failure = theirs < 0 || said_ < 0 ? errno : spawn(command, theirs, said_, process_);
  if (theirs >= 0)
    close(theirs);
  if (failure != 0) {
    process_ = 0;
    end();
    fail_to_start(command, failure);
  }
  owner_ = getpid();
  check_release(command);
}

/// Ends a process that is not the compiler of this release.
void CompilerProcess::check_release(const std::string &command) {
  std::string name = "the compiler '" + command + "' ";
  std::string remedy = std::string("; SHLO_DISC_COMPILER names a Python interpreter with shlo_disc ") + kRelease;
  std::string problem;
  try {
    Answer answer = exchange({.task = "hello"}, kStart);
    const Json *said = answer.header.member("release");
    const auto *release = said ? said->get<std::string>() : nullptr;
    if (release && *release == kRelease)
      return;
    problem = (release ? "is of shlo_disc " + *release : std::string("is not that of shlo_disc")) +
              ", and this plugin of shlo_disc " + kRelease;
  } catch (const Ended &) {
    problem = how_it_ended();
  } catch (const std::exception &) {
    problem = "is not that of shlo_disc";
  } catch (const TimedOut &) {
    problem = "does not answer";
  }
  end();
  throw Failure(PJRT_Error_Code_FAILED_PRECONDITION, name + problem + remedy);
}

Answer CompilerProcess::exchange(const Request &request, std::chrono::seconds limit) {
  Deadline deadline = limit.count() == 0 ? Deadline::max() : std::chrono::steady_clock::now() + limit;
  std::string header = header_of(request);
  uint64_t size = 0;
  for (std::string_view part : request.parts)
    size += part.size();
  for (const std::string &function : request.functions)
    size += function.size();
  send(lengths_of(header.size(), size) + header, deadline);
  for (std::string_view part : request.parts)
    send(part, deadline);
  for (const std::string &function : request.functions)
    send(function, deadline);
  std::string lengths = receive(16, deadline);
  std::string_view rest = lengths;
  uint64_t said_size = read_length(rest), data_size = read_length(rest);
  if (request.task == "hello" && (said_size > kMostFirst || data_size > kMostFirst))
    fail_at_answer();
  std::string said = receive(said_size, deadline), data = receive(data_size, deadline);
  std::string warnings = take_said();
  std::fwrite(warnings.data(), 1, warnings.size(), stderr);
  return read_answer(said, data);
}

void CompilerProcess::wait_for(short events, Deadline deadline) {
  while (true) {
    int milliseconds = -1;
    if (deadline != Deadline::max()) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      if (left <= 0)
        throw TimedOut();
      milliseconds = static_cast<int>(std::min<int64_t>(left, 1 << 30));
    }
    pollfd watched{socket_, events, 0};
    if (poll(&watched, 1, milliseconds) > 0)
      return;
  }
}

void CompilerProcess::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    wait_for(POLLOUT, deadline);
    ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      bytes.remove_prefix(static_cast<size_t>(sent));
    else if (errno != EINTR && errno != EAGAIN)
      throw Ended();
  }
}

std::string CompilerProcess::receive(size_t size, Deadline deadline) {
  std::string bytes(size, '\0');
  for (size_t place = 0; place < size;) {
    wait_for(POLLIN, deadline);
    ssize_t received = recv(socket_, bytes.data() + place, size - place, MSG_DONTWAIT);
    if (received > 0)
      place += static_cast<size_t>(received);
    else if (received == 0 || (errno != EINTR && errno != EAGAIN))
      throw Ended();
  }
  return bytes;
}

bool CompilerProcess::has_ended() {
  pid_t found = waitpid(process_, &status_, WNOHANG);
  if (found == 0)
    return false;
  if (found < 0) // somebody else has waited for it
    status_ = 0;
  process_ = 0; // there is nothing left to wait for
  return true;
}

/// In a fork of the process that started the compiler, the socket is that one's.
void CompilerProcess::forget_if_forked() {
  if (socket_ < 0 || owner_ == getpid())
    return;
  process_ = 0;
  end();
}

/// Of a process that has closed its socket: it is about to end by itself.
std::string CompilerProcess::how_it_ended() {
  for (int i = 0; i < 100 && process_ > 0 && !has_ended(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::string reason = end();
  return "ended with " + name_of(status_) + (reason.empty() ? "" : ": " + reason);
}

/// Ends the process, if there is one. The line of its standard error that tells most.
std::string CompilerProcess::end() {
  if (socket_ >= 0)
    close(socket_);
  socket_ = -1;
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = 0;
  std::string said = said_ >= 0 ? take_said() : std::string();
  if (said_ >= 0)
    close(said_);
  said_ = -1;
  return telling_line(said);
}

/// What the process has written to standard error since the last time.
std::string CompilerProcess::take_said() {
  struct stat found{};
  off_t written = fstat(said_, &found) == 0 ? found.st_size : shown_;
  std::string text(static_cast<size_t>(std::max<off_t>(written - shown_, 0)), '\0');
  if (text.size() > kSaid)
    text.resize(kSaid);
  ssize_t taken = pread(said_, text.data(), text.size(), std::max<off_t>(written - static_cast<off_t>(text.size()), 0));
  text.resize(static_cast<size_t>(std::max<ssize_t>(taken, 0)));
  shown_ = written;
  return text;
}

} // namespace disc::pjrt
