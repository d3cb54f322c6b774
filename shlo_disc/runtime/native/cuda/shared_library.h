// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's libraries, which are opened when they are needed first, and stay open for as long as the process runs.
#pragma once

#include "core/error.h"
#include "core/memory.h"
#include "kernels/library_call.h"

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace disc::cuda {

struct SharedLibrary {
  void *handle;
  std::string name; // that it was found by

  /// The first that there is of paths and names.
  static std::optional<SharedLibrary> open(const std::vector<std::string> &names);

  /// The address of a function. Throws Error(device) where an old library lacks it. what: the library, as in "cuFFT".
  /// advice: what helps.
  void *find(const char *function, const char *what, const char *advice) const;
};

/// A library that programs of some kind cannot do without, and what errors say of it: which programs, its name, and the
/// Python packages that have it.
struct NeededLibrary {
  const char *programs, *name, *packages;

  /// Throws Error(device) where there is none.
  SharedLibrary open(const std::vector<std::string> &names) const;
  [[noreturn]] void fail_unopened() const;

  void *find(const SharedLibrary &library, const char *function) const;
};

/// The functions of such a library, once it has been opened for the process; the first call that finds one counts.
/// `Functions` has a member `take(needed, library)`, which finds them.
template <typename Functions> class OpenedOnce {
public:
  explicit constexpr OpenedOnce(const NeededLibrary &needed) : needed_(needed) {}

  void open(const std::vector<std::string> &names) {
    std::lock_guard lock(mutex_);
    if (found_)
      return;
    SharedLibrary library = needed_.open(names);
    Functions functions;
    functions.take(needed_, library);
    found_ = functions;
  }

  const Functions &get() {
    std::lock_guard lock(mutex_);
    if (!found_)
      needed_.fail_unopened();
    return *found_;
  }

private:
  NeededLibrary needed_;
  std::mutex mutex_;
  std::optional<Functions> found_; // set once
};

/// function(), and again where it found no memory and the allocator could release some.
template <typename Status, typename Function>
Status with_released_memory(Allocator &allocator, Status no_memory, Function function) {
  Status status = function();
  return status == no_memory && allocator.trim() > 0 ? function() : status;
}

/// Throws Error(device) where the status of a function is not 0. names: of the statuses from 0 on, null for those that
/// have their number alone. `what` was asked of it, in words that follow "could not".
void check_status(int status, std::span<const char *const> names, const std::string &what);

/// What a library computes for a call, as errors name it: "a Fourier transform at f.py:3".
std::string shown(const char *what, const CallSpec &spec);

} // namespace disc::cuda
