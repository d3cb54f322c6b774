// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What arrays of the processor's memory hold, to be compared with what they hold later.
#pragma once

#include "core/contents.h"

#include <nanobind/nanobind.h>

#include <vector>

namespace disc {

/// The memory of an array, for as long as this lives.
class HeldMemory {
public:
  /// Throws nb::python_error for an object that has no contiguous buffer.
  explicit HeldMemory(const nanobind::object &array);
  HeldMemory(HeldMemory &&other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
  HeldMemory &operator=(HeldMemory &&) = delete;
  ~HeldMemory() { PyBuffer_Release(&buffer_); }

  const void *data() const { return buffer_.buf; }
  int64_t bytes() const { return buffer_.len; }

private:
  Py_buffer buffer_{};
};

/// The present contents of some arrays, whose memory it keeps. The caller holds the GIL, which is released meanwhile.
class ArrayContents {
public:
  /// Of contiguous arrays that have the buffer protocol. Throws nb::python_error for an object that has not.
  ArrayContents(ThreadPool &pool, const std::vector<nanobind::object> &arrays, Contents::By by);
  ArrayContents(const ArrayContents &) = delete;
  ArrayContents &operator=(const ArrayContents &) = delete;

  /// Whether all hold the same. Thread-safe.
  bool hold() const;

  /// Whether `hold` reads the memory of one of them.
  bool are_read() const;

private:
  ThreadPool &pool_;
  std::vector<HeldMemory> memory_;
  std::vector<Contents> contents_;
};

} // namespace disc
