// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The format is Linux perf's tools/perf/Documentation/jit-interface.txt: "START SIZE name", in hexadecimal.
#include "core/error.h"
#include "object_code.h"

#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace disc {

void ObjectCode::write_perf_map() const {
  std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  // The directory is shared: follow no link, and write to no file of somebody else.
  int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0)
    throw Error(ErrorKind::state, "cannot open " + path);
  struct stat status;
  bool ours = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
  std::FILE *file = ours ? fdopen(descriptor, "a") : nullptr;
  if (!file) {
    close(descriptor);
    throw Error(ErrorKind::state, path + " belongs to somebody else");
  }
  for (const auto &[name, function] : functions_)
    std::fprintf(file, "%" PRIx64 " %" PRIx64 " %s\n", function.address, function.size, name.c_str());
  std::fclose(file);
}

} // namespace disc
