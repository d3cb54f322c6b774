// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "participants.h"

#include "rendezvous.h"

#include <exception>
#include <numeric>
#include <system_error>
#include <thread>

namespace disc {

void run_participants(int64_t count, bool caller_waits, const ParticipantBody &body) {
  Rendezvous rendezvous(count, count);
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  run_participants(rendezvous, all, caller_waits, body);
}

void run_participants(Run &run, std::span<const int64_t> participants, bool caller_waits, const ParticipantBody &body) {
  std::mutex mutex;
  std::exception_ptr first;
  auto fail = [&](const std::string &why) {
    std::lock_guard lock(mutex);
    if (!first)
      first = std::current_exception();
    run.fail(why);
  };
  auto run_one = [&](int64_t participant) noexcept {
    try {
      body(*run.connect(participant));
    } catch (const std::exception &error) {
      fail(error.what());
    }
    run.leave();
  };
  std::vector<std::thread> threads;
  for (int64_t participant : participants.subspan(caller_waits ? 0 : 1)) {
    try {
      threads.emplace_back(run_one, participant);
    } catch (const std::system_error &error) {
      fail(std::string("a thread for a device cannot start: ") + error.what());
      break;
    }
  }
  if (!caller_waits)
    run_one(participants.front());
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace disc
