// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running code without Python's lock.
#pragma once

#include <Python.h>

#include <exception>
#include <optional>
#include <type_traits>
#include <unistd.h>

namespace disc {

/// Takes the lock back.
///
/// While the interpreter shuts down, Python before 3.14 ends daemon threads that ask for the lock by unwinding their
/// stacks. That would run destructors of Python objects without an interpreter, and end the process where a frame does
/// not allow it, so such a thread sleeps until the process ends, as later versions of Python do.
inline void restore_gil(PyThreadState *state) {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    while (true)
      pause();
  }
}

/// Runs `body` with the lock released, and returns or throws what it does.
template <typename Body> auto without_gil(Body body) {
  using Result = std::invoke_result_t<Body>;
  PyThreadState *state = PyEval_SaveThread();
  std::exception_ptr failure;
  if constexpr (std::is_void_v<Result>) {
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
    restore_gil(state);
    if (failure)
      std::rethrow_exception(failure);
  } else {
    std::optional<Result> result;
    try {
      result.emplace(body());
    } catch (...) {
      failure = std::current_exception();
    }
    restore_gil(state);
    if (failure)
      std::rethrow_exception(failure);
    return std::move(*result);
  }
}

} // namespace disc
