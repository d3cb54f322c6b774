// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sixteen threads call one program, each at shapes of its own, load it anew, and are refused; every result is compared
// with that of one thread. argv: artifact of f32[b, 24], calls a thread.
#include "checks.h"

#include <memory>
#include <thread>

namespace {

constexpr int kThreads = 16, kShapes = 12;

struct Expected {
  std::unique_ptr<Array> argument;
  std::string results;
};

void refuse(const disc_program_t *program) {
  Array wrong({3, 25});
  DLTensor tensor = wrong.tensor();
  disc_results_t *results = nullptr;
  disc_error_t *error = disc_call(program, &tensor, 1, &results);
  CHECK(error != nullptr && std::strcmp(disc_error_kind(error), "ShapeError") == 0);
  disc_free_error(error);
}

void call_often(const std::string &bytes, const disc_program_t *program, std::vector<Expected> &expected, int thread,
                int calls) {
  for (int i = 0; i < calls; ++i) {
    Expected &wanted = expected[static_cast<size_t>((thread + i * (1 + thread % 5)) % kShapes)];
    CHECK((i + thread) % 2 ? called(program, *wanted.argument) == wanted.results
                           : run(program, *wanted.argument) == wanted.results);
    if (i % 16 == thread)
      refuse(program);
    if (i % 64 != thread)
      continue;
    disc_program_t *another = load(bytes, trusted(thread % 3)), *bound = nullptr;
    CHECK(called(another, *wanted.argument) == wanted.results);
    DLTensor tensor = wanted.argument->tensor();
    CHECK_OK(disc_bind(another, &tensor, 1, &bound));
    disc_free_program(another);
    disc_results_t *results = nullptr;
    CHECK_OK(disc_call(bound, nullptr, 0, &results));
    disc_free_program(bound);
    CHECK(wanted.results.rfind(contents_of(*disc_result(results, 0)), 0) == 0);
    disc_free_results(results);
  }
}

} // namespace

int main(int argc, char **argv) {
  CHECK(argc == 3);
  std::string bytes = bytes_of(argv[1]);
  disc_load_options options = trusted(4);
  options.memo_bytes = 2000; // less than the shapes need: plans are forgotten while others use them
  disc_program_t *program = load(bytes, options);
  std::vector<Expected> expected;
  for (int64_t i = 0; i < kShapes; ++i) {
    auto argument = std::make_unique<Array>(std::vector<int64_t>{1 + i * i * 3, 24});
    std::string results = called(program, *argument);
    expected.push_back({std::move(argument), std::move(results)});
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { call_often(bytes, program, expected, i, std::atoi(argv[2])); });
  for (std::thread &thread : threads)
    thread.join();
  disc_free_program(program);
  return 0;
}
