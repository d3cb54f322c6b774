// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "participants.h"

#include "rendezvous.h"

#include <exception>
#include <system_error>
#include <thread>

namespace disc {

void run_participants(int64_t count, bool caller_waits, const ParticipantBody &body) {
  Rendezvous rendezvous(count);
  std::mutex mutex;
  std::exception_ptr first;
  auto fail = [&](const std::string &why) {
    std::lock_guard lock(mutex);
    if (!first)
      first = std::current_exception();
    rendezvous.fail(why);
  };
  auto run_one = [&](int64_t number) noexcept {
    try {
      body(*rendezvous.connect(number));
    } catch (const std::exception &error) {
      fail(error.what());
    }
    rendezvous.leave();
  };
  std::vector<std::thread> threads;
  for (int64_t number = caller_waits ? 0 : 1; number < count; ++number) {
    try {
      threads.emplace_back(run_one, number);
    } catch (const std::system_error &error) {
      fail(std::string("a thread for a device cannot start: ") + error.what());
      break;
    }
  }
  if (!caller_waits)
    run_one(0);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace disc
