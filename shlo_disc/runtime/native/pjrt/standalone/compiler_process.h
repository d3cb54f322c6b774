// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process that compiles for a plugin in a process without Python: shlo_disc/pjrt/server.py behind a socket.
//
// A message is the lengths of a header and of data, 8 bytes each with the least significant one first; the header, which
// is JSON; and the data, one part after the other, whose sizes are in the header.
#pragma once

#include "artifact/json.h"

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace disc::pjrt {

/// What is asked of the compiler: the name of a task, numbers and lists of numbers by name, and bytes.
struct Request {
  std::string task;
  std::vector<std::pair<std::string, int64_t>> numbers = {};
  std::vector<int64_t> symbols = {};        // of an executable
  std::vector<std::string_view> parts = {}; // what the task works on
  std::vector<std::string> functions = {};  // of XLA's FFI that programs may call
  std::string key = {};                     // of the compile cache, which is to keep the answer; empty: it keeps none
};

struct Answer {
  Json header;
  std::vector<std::string> parts;
};

/// Throws INTERNAL: what was received is none of the compiler's answers.
[[noreturn]] void fail_at_answer();

/// Takes a length from the front of bytes, of which there are 8 at least.
uint64_t read_length(std::string_view &bytes);

/// Reads a message behind its lengths. Throws Failure with what it says, and INTERNAL where it is none.
Answer read_answer(std::string_view header, std::string_view data);

/// One process, started by the first request, and again where it has ended. Threads may ask at the same time; one is
/// answered after the other.
class CompilerProcess {
public:
  /// chosen: the interpreter, see `compiler_command`. limit: the time for one answer; 0: any.
  CompilerProcess(std::string chosen, std::chrono::seconds limit) : chosen_(std::move(chosen)), limit_(limit) {}
  ~CompilerProcess();
  CompilerProcess(const CompilerProcess &) = delete;
  CompilerProcess &operator=(const CompilerProcess &) = delete;

  /// Throws Failure: what the compiler says; UNIMPLEMENTED without one, FAILED_PRECONDITION for one that does not start or
  /// is of another release, INTERNAL where it ends before it has answered, DEADLINE_EXCEEDED after the limit.
  Answer ask(const Request &request);

private:
  struct Ended {}; // the process has closed its end of the socket
  using Deadline = std::chrono::steady_clock::time_point;

  void start();
  void check_release(const std::string &command);
  Answer exchange(const Request &request, std::chrono::seconds limit);
  void send(std::string_view bytes, Deadline deadline);
  std::string receive(size_t size, Deadline deadline);
  void wait_for(short events, Deadline deadline);
  bool has_ended();
  void forget_if_forked();
  std::string how_it_ended();
  std::string end();
  std::string take_said();

  const std::string chosen_;
  const std::chrono::seconds limit_;
  std::mutex mutex_; // of what follows
  pid_t owner_ = 0;  // the process that started it: a fork of that has none
  pid_t process_ = 0;
  int status_ = 0;   // as waitpid gives it
  int socket_ = -1;
  int said_ = -1;    // its standard error
  off_t shown_ = 0;  // bytes of that which were passed on
};

} // namespace disc::pjrt
