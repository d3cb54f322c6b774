// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler_command.h"

#include "core/release.h"
#include "pjrt/error.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace disc::pjrt {

namespace {

namespace fs = std::filesystem;

constexpr const char *kVariable = "SHLO_DISC_COMPILER";

[[noreturn]] void fail_without_compiler(const std::string &why) {
  throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                "this plugin compiles in a process of Python, and " + why +
                    ": set SHLO_DISC_COMPILER, or the client's option `compiler`, to the Python interpreter of an "
                    "environment with shlo_disc " + kRelease + ", or load compiled programs (`python -m shlo_disc "
                    "compile`) by PJRT_Executable_DeserializeAndLoad");
}

/// Installed packages lie in PREFIX/lib/pythonX.Y/site-packages, and their interpreter is PREFIX/bin/pythonX.Y.
fs::path interpreter_of(const fs::path &package) {
  fs::path version = package.parent_path().parent_path();
  if (!version.filename().string().starts_with("python"))
    return {};
  return version.parent_path().parent_path() / "bin" / version.filename();
}

} // namespace

const std::string &plugin_path() {
  static const std::string path = [] {
    Dl_info info{};
    std::error_code failure;
    if (!dladdr(reinterpret_cast<const void *>(&plugin_path), &info) || !info.dli_fname)
      return std::string();
    return fs::canonical(info.dli_fname, failure).string();
  }();
  return path;
}

std::string package_folder() {
  std::error_code failure;
  fs::path folder = fs::path(plugin_path()).parent_path().parent_path();
  return fs::exists(folder / "pjrt" / "server.py", failure) ? folder.string() : std::string();
}

std::string compiler_command(const std::string &chosen) {
  if (!chosen.empty())
    return chosen;
  if (const char *named = std::getenv(kVariable)) {
    if (*named)
      return named;
    fail_without_compiler(std::string(kVariable) + " is empty");
  }
  if (std::string package = package_folder(); !package.empty())
    if (fs::path found = interpreter_of(package); !found.empty() && access(found.c_str(), X_OK) == 0)
      return found.string();
  fail_without_compiler("finds none beside " + plugin_path());
}

} // namespace disc::pjrt
