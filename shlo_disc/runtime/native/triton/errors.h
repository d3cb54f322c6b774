// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Failures of the backend, as errors of the server.
#pragma once

#include "shlo_disc.h"

#include "triton/server_api.h"

#include <stdexcept>
#include <string>

namespace disc::triton {

struct Failure : std::runtime_error {
  Failure(ErrorCode code, const std::string &text) : std::runtime_error(text), code(code) {}
  ErrorCode code;
};

/// Throws Failure for an error of the server, which it deletes.
void check(TRITONSERVER_Error *error);

/// Throws Failure for an error of the C API, which it frees. The text begins with its code, such as "DISC-S103: ".
/// `name_of` gives the name of the input or output at a path, such as "args[0]".
template <typename NameOf> void check(disc_error_t *error, const NameOf &name_of);
void check(disc_error_t *error);

/// An error of the server for the exception that is being handled.
TRITONSERVER_Error *current_error() noexcept;

/// Null, or the error for what `function` has thrown.
template <typename Function> TRITONSERVER_Error *guarded(Function &&function) noexcept {
  try {
    function();
    return nullptr;
  } catch (...) {
    return current_error();
  }
}

/// Writes a line to the server's log.
void log(LogLevel level, const std::string &text) noexcept;

/// Logs and deletes an error that nobody else can be told; null is permitted.
void log_failure(TRITONSERVER_Error *error) noexcept;

/// The code, the path of the argument or result at fault ("" where it is none) and the text of an error of the C API.
struct ErrorParts {
  ErrorCode code;
  std::string argument, text;
};

/// Frees the error.
ErrorParts take(disc_error_t *error);

template <typename NameOf> void check(disc_error_t *error, const NameOf &name_of) {
  if (error == nullptr)
    return;
  ErrorParts parts = take(error);
  std::string name = parts.argument.empty() ? "" : name_of(parts.argument);
  if (!name.empty() && name != parts.argument)
    parts.text += " (" + parts.argument + " is '" + name + "')";
  throw Failure(parts.code, parts.text);
}

} // namespace disc::triton
