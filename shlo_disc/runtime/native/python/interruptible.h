// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs that Ctrl-C ends, and whatever else a signal's handler raises.
#pragma once

#include "core/error.h"
#include "program/interruptible_run.h"
#include "without_gil.h"

#include <cstdint>
#include <nanobind/nanobind.h>

namespace disc {

/// What a run of this thread asks: in Python's main thread, which is the one that runs handlers of signals, whether one of
/// these has raised an exception.
IsInterrupted interruption_of_thread();

/// Says which thread that is, by its number of pthreads.
void set_main_thread(uintptr_t number);

/// Throws KeyboardInterrupt where a run has failed because a callback of Python was interrupted.
void throw_interruption_of_callback(const Error &failure);

/// As `without_gil`, for a run, which `body` is told to interrupt as it says. Throws what handlers of signals raise.
template <typename Body> auto run_without_gil(Body body) {
  try {
    return without_gil([&] { return body(interruption_of_thread()); });
  } catch (const Interrupted &) {
    throw nanobind::python_error();
  } catch (const Error &failure) {
    throw_interruption_of_callback(failure);
    throw;
  }
}

} // namespace disc
