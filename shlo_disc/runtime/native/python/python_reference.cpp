// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python_reference.h"

#include <mutex>
#include <utility>
#include <vector>

namespace disc {

namespace {

/// What was released without the lock, until the main thread comes to it.
struct Abandoned {
  std::mutex mutex;
  std::vector<PyObject *> objects;
  bool is_scheduled = false;
};

Abandoned &abandoned() {
  static auto *all = new Abandoned; // never destroyed: threads may release objects while the process ends
  return *all;
}

int free_abandoned(void *) {
  free_abandoned_references();
  return 0;
}

void let_go(PyObject *object) {
  if (!Py_IsInitialized())
    return;
  if (PyGILState_Check()) {
    Py_DECREF(object);
    return;
  }
  Abandoned &all = abandoned();
  std::lock_guard lock(all.mutex);
  all.objects.push_back(object);
  if (!all.is_scheduled) // Python's list of calls may be full; the next object tries again then
    all.is_scheduled = Py_AddPendingCall(free_abandoned, nullptr) == 0;
}

} // namespace

void free_abandoned_references() {
  std::vector<PyObject *> objects;
  {
    std::lock_guard lock(abandoned().mutex);
    objects.swap(abandoned().objects);
    abandoned().is_scheduled = false;
  }
  for (PyObject *object : objects)
    Py_DECREF(object);
}

std::shared_ptr<PyObject> shared_reference(nanobind::object object) { return {object.release().ptr(), let_go}; }

} // namespace disc
