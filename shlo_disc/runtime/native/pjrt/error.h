// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors of the C API, and functions of its table made from functions that throw.
#pragma once

#include "core/error.h"
#include "pjrt_c_api.h"

#include <span>
#include <string>

struct PJRT_Error {
  PJRT_Error(PJRT_Error_Code code, std::string message);

  const PJRT_Error_FunctionTable *table; // first, by the interface
  PJRT_Error_Code code;
  std::string message;
};

namespace disc::pjrt {

/// An error whose code is known.
class Failure : public std::runtime_error {
public:
  Failure(PJRT_Error_Code code, const std::string &message) : std::runtime_error(message), code(code) {}
  PJRT_Error_Code code;
};

[[noreturn]] inline void fail_argument(const std::string &message) {
  throw Failure(PJRT_Error_Code_INVALID_ARGUMENT, message);
}

[[noreturn]] inline void fail_unimplemented(const std::string &what) {
  throw Failure(PJRT_Error_Code_UNIMPLEMENTED, what + " is not implemented by shlo_disc");
}

/// The object that an argument names. Throws when there is none.
template <typename T> T &given(T *object, const char *name) {
  if (!object)
    fail_argument(std::string("the argument '") + name + "' is null");
  return *object;
}

/// The objects that an argument names, so many in a row. Throws when there are none and should be.
template <typename T> std::span<T> given(T *first, size_t count, const char *name) {
  if (count > 0)
    given(first, name);
  return {first, count};
}

/// The characters that an argument names.
inline std::string given_text(const char *first, size_t size, const char *name) {
  std::span<const char> characters = given(first, size, name);
  return {characters.begin(), characters.end()};
}

/// The exception in flight as an error.
PJRT_Error *current_error() noexcept;

/// The exception in flight, for others.
Failure current_failure();

/// The size of a structure of arguments that ends with `field`.
template <typename Args, typename Field> size_t size_up_to(const Args &args, const Field &field) {
  auto end = reinterpret_cast<const char *>(&field) + sizeof(Field);
  return static_cast<size_t>(end - reinterpret_cast<const char *>(&args));
}

/// Whether a caller's structure is long enough to have a field.
template <typename Args, typename Field> bool has_field(const Args &args, const Field &field) {
  return size_up_to(args, field) <= args.struct_size;
}

/// Refuses a structure that is shorter than what is read of it: callers count without the padding at the end.
void check_size(size_t given, size_t expected);

template <auto Function> struct EntryOf;

template <typename Args, void (*Function)(Args &)> struct EntryOf<Function> {
  static PJRT_Error *call(Args *args) noexcept {
    return checked(args, [](const Args &) { return sizeof(Args); });
  }

  template <auto Last> static PJRT_Error *call_up_to(Args *args) noexcept {
    return checked(args, [](const Args &known) { return size_up_to(known, known.*Last); });
  }

  template <typename Required> static PJRT_Error *checked(Args *args, Required required) noexcept {
    try {
      check_size(given(args, "args").struct_size, required(*args));
      Function(*args);
      return nullptr;
    } catch (...) {
      return current_error();
    }
  }
};

/// A function of the table.
template <auto Function> constexpr auto entry = &EntryOf<Function>::call;

/// The same for arguments that have grown: what follows the field `Last` may be missing, and needs `has_field`.
template <auto Function, auto Last> constexpr auto entry_up_to = &EntryOf<Function>::template call_up_to<Last>;

/// Puts this file's functions into the table, as every file of its kind does.
void add_error_functions(PJRT_Api &api);

} // namespace disc::pjrt
