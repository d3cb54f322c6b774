// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "repeats.h"

#include "arguments.h"
#include "buffer.h"
#include "numpy_api.h"

namespace disc {

namespace {

bool refers_to(const nb::object &weak, PyObject *object) {
  if (!weak.is_valid())
    return false;
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *target = nullptr;
  if (PyWeakref_GetRef(weak.ptr(), &target) < 0)
    throw nb::python_error();
  nb::object owner = nb::steal(target);
  return target == object;
#else
  return PyWeakref_GetObject(weak.ptr()) == object;
#endif
}

/// Whether the runtime looks out for this array to come again.
bool may_come_again(PyObject *leaf) {
  PyTypeObject *type = Py_TYPE(leaf);
  return reinterpret_cast<PyObject *>(type) == argument_hooks().jax_array_type.ptr() || PyArray_CheckExact(leaf) ||
         type == reinterpret_cast<PyTypeObject *>(nb::type<Buffer>().ptr());
}

} // namespace

std::vector<std::shared_ptr<RememberedForm>> Repeats::forms(const Program &program,
                                                            const std::vector<PyObject *> &leaves, const Pack &pack) {
  std::vector<std::shared_ptr<RememberedForm>> result(program.packs.size());
  entries_.resize(program.packs.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t leaf = program.packs[i].buffer;
    if (leaf >= leaves.size())
      continue;
    Entry &entry = entries_[i];
    bool is_array = may_come_again(leaves[leaf]);
    if (!is_array || !refers_to(entry.last, leaves[leaf])) {
      entry = {is_array ? nb::steal(PyWeakref_NewRef(leaves[leaf], nullptr)) : nb::object(), nullptr, false};
      continue;
    }
    if (entry.form && entry.form->is_stale)
      entry.form = nullptr, entry.has_changed = true;
    if (entry.has_changed)
      continue;
    result[i] = entry.form ? entry.form : pack(i);
    if (refers_to(entry.last, leaves[leaf])) // packing gives the GIL to others
      entry.form = result[i];
  }
  return result;
}

} // namespace disc
