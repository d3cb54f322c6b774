// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running code without Python's lock.
#pragma once

#include <Python.h>

#include <unistd.h>

namespace disc {

/// Runs `body`, which must not throw, with the lock released.
///
/// While the interpreter shuts down, Python before 3.14 ends daemon threads that ask for the lock by unwinding their
/// stacks. That would run destructors of Python objects without an interpreter, and end the process where a frame does
/// not allow it, so such a thread sleeps until the process ends, as later versions of Python do.
template <typename Body> void without_gil(Body body) {
  PyThreadState *state = PyEval_SaveThread();
  body();
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    while (true)
      pause();
  }
}

} // namespace disc
