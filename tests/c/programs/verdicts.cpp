// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads damages of an artifact, and prints what is said of each. argv: the artifact. Each damage is, on the standard
// input: how many bytes of the artifact are kept (64 bits), the place (64 bits) and the length (64 bits) of what is
// written over them, and this. A verdict is "kind: text", or "loaded", and a zero.
#include "checks.h"

#include <unistd.h>

namespace {

bool take(void *to, size_t bytes) { return std::fread(to, 1, bytes, stdin) == bytes; }

void print_verdict(const std::string &bytes) {
  // Of exactly their size, so that a read behind them is one behind the block.
  std::vector<char> copy(bytes.begin(), bytes.end());
  disc_load_options options = trusted(1);
  disc_program_t *program = nullptr;
  disc_error_t *error = disc_load_bytes(copy.data(), copy.size(), &options, &program);
  CHECK((error == nullptr) == (program != nullptr));
  if (error != nullptr)
    std::printf("%s: %s", disc_error_kind(error), disc_error_text(error));
  else
    std::printf("loaded");
  std::putchar('\0');
  disc_free_error(error);
  disc_free_program(program);
}

} // namespace

int main(int argc, char **argv) {
  CHECK(argc == 2);
  std::string good = bytes_of(argv[1]);
  for (uint64_t damage[3]; take(damage, sizeof damage);) {
    std::string bytes = good.substr(0, damage[0]);
    std::string change(damage[2], '\0');
    CHECK(take(change.data(), change.size()));
    bytes.resize(std::max<size_t>(bytes.size(), damage[1] + change.size()));
    bytes.replace(damage[1], change.size(), change);
    print_verdict(bytes);
  }
  return 0;
}
