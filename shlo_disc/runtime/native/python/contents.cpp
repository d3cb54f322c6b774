// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contents.h"

#include "without_gil.h"

#include <algorithm>

namespace nb = nanobind;

namespace disc {

HeldMemory::HeldMemory(const nb::object &array) {
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_C_CONTIGUOUS) != 0)
    throw nb::python_error();
}

ArrayContents::ArrayContents(ThreadPool &pool, const std::vector<nb::object> &arrays, Contents::By by) : pool_(pool) {
  memory_.reserve(arrays.size());
  for (const nb::object &array : arrays)
    memory_.emplace_back(array);
  without_gil([&] {
    contents_.reserve(memory_.size());
    for (const HeldMemory &one : memory_)
      contents_.emplace_back(pool_, one.data(), one.bytes(), by);
  });
}

bool ArrayContents::are_read() const { return std::ranges::any_of(contents_, &Contents::are_read); }

bool ArrayContents::hold() const {
  return without_gil([&] { return std::ranges::all_of(contents_, [&](const Contents &one) { return one.hold(pool_); }); });
}

} // namespace disc
