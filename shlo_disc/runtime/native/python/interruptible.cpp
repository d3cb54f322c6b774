// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "interruptible.h"

#include <atomic>
#include <pthread.h>
#include <string_view>

namespace disc {

namespace {

std::atomic<uintptr_t> main_thread{0};

/// Runs the handlers of the signals that have come. The exception that one has raised is set.
bool have_signals_raised() {
  PyGILState_STATE state = PyGILState_Ensure();
  bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

} // namespace

void set_main_thread(uintptr_t number) { main_thread.store(number, std::memory_order_relaxed); }

IsInterrupted interruption_of_thread() {
  bool is_main = static_cast<uintptr_t>(pthread_self()) == main_thread.load(std::memory_order_relaxed);
  return is_main ? have_signals_raised : nullptr;
}

void throw_interruption_of_callback(const Error &failure) {
  constexpr std::string_view said = ": KeyboardInterrupt: "; // by `runtime/callbacks.py`
  if (failure.kind != ErrorKind::custom_call || !std::string_view(failure.what()).ends_with(said))
    return;
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nanobind::python_error();
}

} // namespace disc
