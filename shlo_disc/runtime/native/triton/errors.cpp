// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/errors.h"

#include <new>
#include <string_view>

namespace disc::triton {

namespace {

/// Sizes and types are the request's fault, memory may be free later, and a file is missing or has no code for here.
ErrorCode code_of(std::string_view kind) {
  if (kind == "ShapeError" || kind == "ArgumentTypeError" || kind == "ValueError")
    return kInvalidArgument;
  if (kind == "AllocationError")
    return kUnavailable;
  if (kind == "ArtifactError")
    return kUnsupported;
  return kind == "OSError" ? kNotFound : kInternal;
}

} // namespace

void check(TRITONSERVER_Error *error) {
  if (error == nullptr)
    return;
  Failure failure(TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  throw failure;
}

void check(disc_error_t *error) {
  check(error, [](const std::string &path) { return path; });
}

ErrorParts take(disc_error_t *error) {
  std::string code = disc_error_code(error);
  const char *argument = disc_error_argument(error);
  ErrorParts parts{code_of(disc_error_kind(error)), argument != nullptr ? argument : "",
                   (code.empty() ? "" : code + ": ") + disc_error_text(error)};
  disc_free_error(error);
  return parts;
}

TRITONSERVER_Error *current_error() noexcept {
  try {
    throw;
  } catch (const Failure &failure) {
    return TRITONSERVER_ErrorNew(failure.code, failure.what());
  } catch (const std::bad_alloc &) {
    return TRITONSERVER_ErrorNew(kUnavailable, "out of memory");
  } catch (const std::exception &error) {
    return TRITONSERVER_ErrorNew(kInternal, error.what());
  }
}

void log(LogLevel level, const std::string &text) noexcept {
  if (TRITONSERVER_Error *error = TRITONSERVER_LogMessage(level, "shlo_disc", 0, text.c_str()))
    TRITONSERVER_ErrorDelete(error);
}

void log_failure(TRITONSERVER_Error *error) noexcept {
  if (error == nullptr)
    return;
  TRITONSERVER_Error *unlogged = TRITONSERVER_LogMessage(kError, "shlo_disc", 0, TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  if (unlogged != nullptr)
    TRITONSERVER_ErrorDelete(unlogged);
}

} // namespace disc::triton
