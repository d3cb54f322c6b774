// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiled program from C++17. argv: an artifact of f32[b, s] with one result of f32, and the sizes b and s.
//
//   python -c 'import jax, shlo_disc; shlo_disc.compile(jax.nn.softmax, args=(("b, s", "float32"),)).save("softmax.disc")'
//   include=$(python -c 'import shlo_disc; print(shlo_disc.get_include())')
//   lib=$(dirname $(python -c 'import shlo_disc; print(shlo_disc.get_library())'))
//   g++ -std=c++17 score.cpp -I$include -L$lib -lshlo_disc_runtime -Wl,-rpath,$lib -o score && ./score softmax.disc 2 3
#include "shlo_disc.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Free {
  void operator()(disc_program_t *program) const { disc_free_program(program); }
  void operator()(disc_plan_t *plan) const { disc_free_plan(plan); }
  void operator()(disc_error_t *error) const { disc_free_error(error); }
};

/// Throws what a function has failed with.
void check(disc_error_t *error) {
  std::unique_ptr<disc_error_t, Free> owner(error);
  if (owner)
    throw std::runtime_error(std::string(disc_error_kind(error)) + ": " + disc_error_text(error));
}

/// A program that is loaded once and called at any sizes, from any thread.
class Program {
public:
  explicit Program(const char *path) {
    disc_load_options options{};
    options.struct_size = sizeof options;
    options.trust = 1;
    disc_program_t *loaded = nullptr;
    check(disc_load(path, &options, &loaded));
    program_.reset(loaded);
  }

  /// The result for `input` of b x s elements.
  std::vector<float> operator()(std::vector<float> &input, std::vector<int64_t> sizes) const {
    disc_plan_t *planned = nullptr;
    check(disc_plan(program_.get(), sizes.data(), sizes.size(), &planned));
    std::unique_ptr<disc_plan_t, Free> plan(planned);
    std::vector<float> output(static_cast<size_t>(disc_plan_result_bytes(planned, 0)) / sizeof(float));
    disc_array_info info{};
    info.struct_size = sizeof info;
    check(disc_describe_result(program_.get(), 0, &info));
    DLTensor argument = tensor(input, sizes.data(), sizes.size());
    DLTensor result = tensor(output, const_cast<int64_t *>(disc_plan_result_shape(planned, 0)), info.rank);
    check(disc_run(planned, &argument, 1, &result, 1));
    return output;
  }

private:
  static DLTensor tensor(std::vector<float> &elements, int64_t *sizes, size_t rank) {
    DLTensor made{};
    made.data = elements.data();
    made.device.device_type = kDLCPU;
    made.ndim = static_cast<int32_t>(rank);
    made.dtype = {kDLFloat, 32, 1};
    made.shape = sizes;
    return made;
  }

  std::unique_ptr<disc_program_t, Free> program_;
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s ARTIFACT B S\n", argv[0]);
    return 2;
  }
  try {
    Program program(argv[1]);
    int64_t b = std::atoll(argv[2]), s = std::atoll(argv[3]);
    std::vector<float> input(static_cast<size_t>(b * s));
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = static_cast<float>(i) / 8;
    for (float element : program(input, {b, s}))
      std::printf("%.9g\n", element);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
