// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Executables from the bytes of artifacts: answers of the compiler, what `serialize` of either plugin wrote, and files of
// Executable.save.
#pragma once

#include "pjrt/compile.h"

namespace disc::pjrt {

/// What an executable was read from.
struct ArtifactBytes {
  std::shared_ptr<const char> owner; // of the bytes; null: they are another's, and are copied
  std::string_view bytes;
  std::string options;              // compile options that are written in it
  std::weak_ptr<Compiler> compiler; // which has compiled it; none for what was serialized
};

/// Loads an artifact for processors; its `compiled.artifact` is the ArtifactBytes. check: is called with the number of
/// devices that run it together and the options in it, before its code is loaded. Throws Error(artifact).
Deserialized load_artifact(ArtifactBytes read, const std::function<void(int64_t, const std::string &)> &check);

} // namespace disc::pjrt
