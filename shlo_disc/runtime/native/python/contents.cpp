// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contents.h"

#include "without_gil.h"

namespace nb = nanobind;

namespace disc {

namespace {

/// The memory of an array, for as long as this lives.
class Held {
public:
  explicit Held(const nb::object &array) {
    if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_C_CONTIGUOUS) != 0)
      throw nb::python_error();
  }
  Held(Held &&other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
  ~Held() { PyBuffer_Release(&buffer_); }

  const void *data() const { return buffer_.buf; }
  int64_t bytes() const { return buffer_.len; }

private:
  Py_buffer buffer_{};
};

} // namespace

Contents::Contents(ThreadPool &pool, const std::vector<nb::object> &arrays) {
  std::vector<Held> held;
  held.reserve(arrays.size());
  for (const nb::object &array : arrays)
    held.emplace_back(array);
  without_gil([&] {
    arrays_.reserve(held.size());
    for (const Held &one : held)
      arrays_.emplace_back(pool, one.data(), one.bytes());
  });
}

} // namespace disc
