// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "participants.h"

#include "core/task_threads.h"
#include "rendezvous.h"

#include <exception>
#include <mutex>
#include <numeric>

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
  auto run_one = [&](int64_t position) noexcept {
    try {
      body(*run.connect(participants[static_cast<size_t>(position)]));
    } catch (const std::exception &error) {
      fail(error.what());
    }
    run.leave();
  };
  try {
    TaskThreads::instance().run(static_cast<int64_t>(participants.size()), caller_waits, run_one);
  } catch (const std::exception &error) {
    fail(std::string("a thread for a device cannot start: ") + error.what());
  }
  if (first)
    std::rethrow_exception(first);
}

} // namespace disc
