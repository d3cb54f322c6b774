// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls a program at a thousand shapes, over and over, and prints by how many KiB the process has grown after the first
// tenth. argv: artifact of f32[b, 24], calls.
#include "checks.h"

#include <memory>
#include <unistd.h>

namespace {

constexpr long kShapes = 1000;

long resident_kilobytes() {
  std::ifstream file("/proc/self/statm");
  long all = 0, resident = 0;
  file >> all >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

} // namespace

int main(int argc, char **argv) {
  CHECK(argc == 3);
  long calls = std::atol(argv[2]), before = 0;
  disc_load_options options = trusted(1);
  options.memo_bytes = 100'000; // some of the shapes
  disc_program_t *program = load(bytes_of(argv[1]), options);
  Array whole({kShapes, 24});
  for (long i = 0; i < calls; ++i) {
    if (i == calls / 10)
      before = resident_kilobytes();
    int64_t sizes[] = {1 + i * 7 % kShapes, 24};
    DLTensor tensor = whole.tensor();
    tensor.shape = sizes;
    disc_results_t *results = nullptr;
    CHECK_OK(disc_call(program, &tensor, 1, &results));
    disc_free_results(results);
    disc_plan_t *plan = nullptr;
    CHECK_OK(disc_plan(program, sizes, 2, &plan));
    disc_free_plan(plan);
  }
  std::printf("%ld\n", resident_kilobytes() - before);
  disc_free_program(program);
  return 0;
}
