// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exceptions of the core as errors of the C API.
#pragma once

#include "shlo_disc.h"

#include "core/error.h"

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace disc::capi {

/// A failure that the core has no kind for.
struct Failure : std::runtime_error {
  Failure(const char *kind, const std::string &text) : std::runtime_error(text), kind(kind) {}
  const char *kind;
  std::optional<std::string> argument; // the path of the argument or result at fault
};

[[noreturn]] inline void bad_value(const std::string &text) { throw Failure("ValueError", text); }

/// "1 argument", "2 arguments".
inline std::string counted(size_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// The object that a parameter points to. Throws where it is NULL.
template <typename T> T &given(T *pointer, const char *parameter) {
  if (pointer == nullptr)
    bad_value(std::string(parameter) + " is NULL");
  return *pointer;
}

/// `count` objects from the one on that a parameter points to. Throws where it is NULL and there are some.
template <typename T> std::span<T> given(T *first, size_t count, const char *parameter) {
  if (count > 0)
    given(first, parameter);
  return {first, count};
}

/// Checks the member struct_size of a caller's structure: it is the size of a version of the structure, all of whose
/// members end at multiples of 8 bytes, or of a later one. Throws where it is not set, or is no such size.
inline void check_struct_size(size_t size, const char *structure) {
  constexpr size_t first = 16, most = 4096, step = 8;
  if (size == 0)
    bad_value(std::string("struct_size of ") + structure + " is not set: set it to sizeof(" + structure + ")");
  if (size < first || size > most || size % step != 0)
    bad_value(std::string("struct_size of ") + structure + " is " + std::to_string(size) +
              ", which is the size of no version of it: set it to sizeof(" + structure + ")");
}

/// The error for the exception that is being handled.
disc_error_t *current_error() noexcept;

/// NULL, or what `function` has thrown.
template <typename Function> disc_error_t *guarded(Function &&function) noexcept {
  try {
    function();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

} // namespace disc::capi
