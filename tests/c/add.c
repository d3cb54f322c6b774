// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs an artifact of one matrix of f32: prints each result as bytes, by the two ways of calling; argv: artifact, rows,
// columns. An error is printed as its kind, its argument and its text, and ends the program with 1.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shlo_disc.h"

static void check(disc_error_t *error) {
  if (error == NULL)
    return;
  const char *argument = disc_error_argument(error);
  printf("%s|%s|%s", disc_error_kind(error), argument ? argument : "", disc_error_text(error));
  disc_free_error(error);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  disc_load_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.trust = 1;
  disc_program_t *program;
  check(disc_load(argv[1], &options, &program));
  int64_t sizes[2] = {atoll(argv[2]), atoll(argv[3])};
  size_t count = (size_t)(sizes[0] * sizes[1]);
  float *elements = (float *)malloc(count * sizeof(float) + 1);
  for (size_t i = 0; i < count; ++i)
    elements[i] = (float)i / 7.0f;
  DLTensor argument = {elements, {kDLCPU, 0}, 2, {2, 32, 1}, sizes, NULL, 0};
  disc_plan_t *plan;
  check(disc_plan(program, sizes, 2, &plan));
  if (disc_plan_result_bytes(plan, 0) != (int64_t)(count * sizeof(float)) || disc_plan_result_bytes(plan, 1) != -1)
    return 3;
  float *out = (float *)malloc(count * sizeof(float) + 1);
  DLTensor result = argument;
  result.data = out;
  check(disc_run(plan, &argument, 1, &result, 1));
  disc_results_t *results;
  check(disc_call(program, &argument, 1, &results));
  disc_free_program(program);
  disc_free_plan(plan);
  if (count != 0 && memcmp(disc_result(results, 0)->data, out, count * sizeof(float)) != 0)
    return 4;
  fwrite(out, sizeof(float), count, stdout);
  disc_free_results(results);
  free(out);
  free(elements);
  return 0;
}
