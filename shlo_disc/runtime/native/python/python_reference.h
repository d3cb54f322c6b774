// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// References to Python's objects from C++ that any thread may release.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>

namespace disc {

/// Keeps `object` alive. A thread that has not Python's lock leaves the object to Python's main thread: it must not wait
/// for the lock, because Python, when it finalizes, ends the threads that do. Once Python has ended, nothing is freed.
std::shared_ptr<PyObject> shared_reference(nanobind::object object);

/// A share of what an object in Python refers to. Any thread may release it, for it is no share of the object: its class
/// is made by `nb::new_` out of a `std::shared_ptr`, which nanobind finds again.
template <typename T> std::shared_ptr<T> shared_with_python(nanobind::handle object) {
  static_assert(nanobind::detail::has_shared_from_this_v<T>, "nanobind would wait for Python's lock at its release");
  return nanobind::cast<std::shared_ptr<T>>(object);
}

/// Frees what is left to the main thread, which may be waiting for something else. For threads that have the lock.
void free_abandoned_references();

} // namespace disc
