// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// References to Python's objects from C++ that any thread may release.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace disc {

/// Keeps `object` alive. A thread that has not Python's lock leaves the object to Python's main thread: it must not wait
/// for the lock, because Python, when it finalizes, ends the threads that do. Once Python has ended, nothing is freed.
std::shared_ptr<PyObject> shared_reference(nanobind::object object);

/// Frees what is left to the main thread, which may be waiting for something else. For threads that have the lock.
void free_abandoned_references();

} // namespace disc
