// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "error.h"

#include <memory>
#include <new>

namespace {

void destroy(PJRT_Error *error) { delete error; }

/// Of no error, an empty message.
void get_message(const PJRT_Error *error, const char **message, size_t *size) {
  if (message)
    *message = error ? error->message.data() : "";
  if (size)
    *size = error ? error->message.size() : 0;
}

PJRT_Error_Code get_code(const PJRT_Error *error) { return error ? error->code : PJRT_Error_Code_OK; }

void visit_no_payloads(const PJRT_Error *, PJRT_Error_PayloadVisitor, void *) {}

const PJRT_Error_FunctionTable kTable{sizeof(PJRT_Error_FunctionTable), sizeof(PJRT_Error), nullptr, destroy,
                                      get_message, get_code, visit_no_payloads};

} // namespace

PJRT_Error::PJRT_Error(PJRT_Error_Code code, std::string message)
    : table(&kTable), code(code), message(std::move(message)) {}

namespace disc::pjrt {

namespace {

PJRT_Error_Code code_of(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::artifact:
  case ErrorKind::shape:
  case ErrorKind::type:
    return PJRT_Error_Code_INVALID_ARGUMENT;
  case ErrorKind::allocation:
    return PJRT_Error_Code_RESOURCE_EXHAUSTED;
  case ErrorKind::state:
    return PJRT_Error_Code_FAILED_PRECONDITION;
  case ErrorKind::custom_call:
  case ErrorKind::device:
    return PJRT_Error_Code_INTERNAL;
  }
  return PJRT_Error_Code_INTERNAL;
}

PJRT_Error *error_destroy(PJRT_Error_Destroy_Args *args) {
  if (args)
    delete args->error;
  return nullptr;
}

PJRT_Error *error_message(PJRT_Error_Message_Args *args) {
  if (!args)
    return nullptr; // what reads errors makes none
  get_message(args->error, &args->message, &args->message_size);
  return nullptr;
}

void error_get_code(PJRT_Error_GetCode_Args &args) { args.code = given(args.error, "error").code; }

void error_for_each_payload(PJRT_Error_ForEachPayload_Args &args) { given(args.error, "error"); }

} // namespace

PJRT_Error *current_error() noexcept {
  try {
    throw;
  } catch (const Failure &failure) {
    return new PJRT_Error(failure.code, failure.what());
  } catch (const Error &error) {
    return new PJRT_Error(code_of(error.kind), error.what());
  } catch (const std::bad_alloc &) {
    return new PJRT_Error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception &error) {
    return new PJRT_Error(PJRT_Error_Code_INTERNAL, error.what());
  }
}

Failure current_failure() {
  std::unique_ptr<PJRT_Error> error(current_error());
  return Failure(error->code, error->message);
}

void check_size(size_t given, size_t expected) {
  constexpr size_t padding = sizeof(void *) - 1;
  if (given + padding < expected)
    fail_argument("the arguments have " + std::to_string(given) + " bytes and should have " +
                  std::to_string(expected) + ": the framework speaks an older version of PJRT's C API");
}

void add_error_functions(PJRT_Api &api) {
  api.PJRT_Error_Destroy = error_destroy;
  api.PJRT_Error_Message = error_message;
  api.PJRT_Error_GetCode = entry<error_get_code>;
  api.PJRT_Error_ForEachPayload = entry<error_for_each_payload>;
}

} // namespace disc::pjrt
