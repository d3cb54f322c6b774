// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes of any object with a buffer, as long as somebody holds its owner.
#pragma once

#include "core/error.h"
#include "python_reference.h"

#include <memory>
#include <string_view>

namespace disc {

class BufferBytes {
public:
  explicit BufferBytes(const nanobind::object &object) {
    nanobind::object view = nanobind::steal(PyMemoryView_FromObject(object.ptr()));
    if (!view.is_valid())
      throw nanobind::python_error();
    const Py_buffer &buffer = *PyMemoryView_GET_BUFFER(view.ptr());
    if (!PyBuffer_IsContiguous(&buffer, 'C'))
      bad_artifact("the bytes of an artifact are not contiguous");
    bytes_ = {static_cast<const char *>(buffer.buf), static_cast<size_t>(buffer.len)};
    owner_ = shared_reference(std::move(view));
  }

  std::string_view bytes() const { return bytes_; }
  const std::shared_ptr<const void> &owner() const { return owner_; }

private:
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;
};

} // namespace disc
