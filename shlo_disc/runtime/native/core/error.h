// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Failures inside the core; the bindings turn each kind into its class of shlo_disc.errors.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace disc {

enum class ErrorKind { artifact, shape, type, allocation, state, custom_call, device };

/// The exception that Python has for a kind; null for a wrong state, which is a RuntimeError.
inline const char *class_name(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::artifact:
    return "ArtifactError";
  case ErrorKind::shape:
    return "ShapeError";
  case ErrorKind::type:
    return "ArgumentTypeError";
  case ErrorKind::custom_call:
    return "CustomCallError";
  case ErrorKind::device:
    return "DeviceError";
  default:
    return nullptr;
  }
}

/// The advice at the end of a message, in the words of Python and of C.
struct Remedy {
  const char *python, *c;
};

class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string &message) : std::runtime_error(message), kind(kind), text_in_c(message) {}
  Error(ErrorKind kind, const std::string &problem, const Remedy &remedy)
      : std::runtime_error(problem + remedy.python), kind(kind), text_in_c(problem + remedy.c) {}
  ErrorKind kind;
  std::string text_in_c; // what() without words of Python
  std::optional<std::string> argument; // the path of the argument at fault
};

/// Memory could not be had; `bytes` is what was asked for.
class AllocationFailure : public Error {
public:
  AllocationFailure(int64_t bytes, const std::string &why)
      : Error(ErrorKind::allocation, "could not allocate " + std::to_string(bytes) + " bytes: " + why), bytes(bytes) {}
  int64_t bytes;
};

[[noreturn]] inline void bad_artifact(const std::string &message) { throw Error(ErrorKind::artifact, message); }

[[noreturn]] inline void bad_artifact(const std::string &problem, const Remedy &remedy) {
  throw Error(ErrorKind::artifact, problem, remedy);
}

} // namespace disc
