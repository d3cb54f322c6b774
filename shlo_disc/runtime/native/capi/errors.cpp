// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "errors.h"

#include "error_codes.h"

#include <memory>
#include <new>
#include <optional>

struct disc_error {
  std::string kind, text;
  const char *code = "";
  std::optional<std::string> argument;
};

namespace disc::capi {

namespace {

/// For when there is no memory for an error; never freed.
disc_error *out_of_memory() {
  static auto *error = new (std::nothrow) disc_error{"AllocationError", "out of memory", "DISC-M101", std::nullopt};
  return error;
}

[[maybe_unused]] const disc_error *const made_at_start = out_of_memory();

disc_error *make_error(const char *kind, const std::string &text) {
  return new disc_error{kind, text, error_code(kind, text), std::nullopt};
}

const char *kind_of(const Error &error) {
  if (error.kind == ErrorKind::allocation)
    return "AllocationError";
  const char *name = class_name(error.kind);
  return name != nullptr ? name : "RuntimeError";
}

disc_error *describe_current() {
  try {
    throw;
  } catch (const Error &error) {
    std::unique_ptr<disc_error> made(make_error(kind_of(error), error.what())); // the code is that of Python's text
    made->text = error.text_in_c;
    made->argument = error.argument;
    return made.release();
  } catch (const Failure &failure) {
    std::unique_ptr<disc_error> made(make_error(failure.kind, failure.what()));
    made->argument = failure.argument;
    return made.release();
  } catch (const std::bad_alloc &) {
    return make_error("AllocationError", "out of memory");
  } catch (const std::exception &error) {
    return make_error("RuntimeError", error.what());
  } catch (...) {
    return make_error("RuntimeError", "an unknown failure");
  }
}

} // namespace

disc_error_t *current_error() noexcept {
  try {
    return describe_current();
  } catch (...) {
    return out_of_memory();
  }
}

} // namespace disc::capi

const char *disc_error_kind(const disc_error_t *error) { return error != nullptr ? error->kind.c_str() : ""; }
const char *disc_error_text(const disc_error_t *error) { return error != nullptr ? error->text.c_str() : "no error"; }

const char *disc_error_code(const disc_error_t *error) { return error != nullptr ? error->code : ""; }

const char *disc_error_argument(const disc_error_t *error) {
  return error != nullptr && error->argument ? error->argument->c_str() : nullptr;
}

void disc_free_error(disc_error_t *error) {
  if (error != disc::capi::out_of_memory())
    delete error;
}
