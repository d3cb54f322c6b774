// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs an artifact; argv: artifact, a library with a BLAS or "-", calls. The standard input has for each argument its sizes
// (64 bits each) and its elements; written are the elements of all results. Prints the microseconds of loading, of the
// first call at these sizes, and of the fastest later one to the standard error.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shlo_disc.h"

static void check(disc_error_t *error) {
  if (error == NULL)
    return;
  fprintf(stderr, "%s: %s\n", disc_error_kind(error), disc_error_text(error));
  exit(1);
}

static long long microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static size_t bytes_of(const DLTensor *tensor) {
  size_t bytes = (tensor->dtype.bits + 7u) / 8u;
  for (int32_t i = 0; i < tensor->ndim; ++i)
    bytes *= (size_t)tensor->shape[i];
  return bytes;
}

static void *filled(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes / 64 + 1) * 64);
  if (memory == NULL || fread(memory, 1, bytes, stdin) != bytes)
    exit(2);
  return memory;
}

static DLTensor read_argument(const disc_program_t *program, size_t index) {
  disc_array_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  check(disc_describe_argument(program, index, &info));
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.device.device_type = kDLCPU;
  tensor.ndim = (int32_t)info.rank;
  tensor.dtype = info.type;
  tensor.shape = (int64_t *)filled(info.rank * sizeof(int64_t));
  tensor.data = filled(bytes_of(&tensor));
  return tensor;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  if (strcmp(argv[2], "-") != 0)
    check(disc_open_blas(argv[2]));
  disc_load_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.trust = 1;
  disc_program_t *program;
  long long start = microseconds();
  check(disc_load(argv[1], &options, &program));
  long long loaded = microseconds() - start, first = 0, fastest = -1;
  size_t count = disc_argument_count(program);
  DLTensor *arguments = (DLTensor *)calloc(count + 1, sizeof *arguments);
  for (size_t i = 0; i < count; ++i)
    arguments[i] = read_argument(program, i);
  disc_results_t *results = NULL;
  for (int i = 0; i < atoi(argv[3]); ++i) {
    disc_free_results(results);
    start = microseconds();
    check(disc_call(program, arguments, count, &results));
    long long taken = microseconds() - start;
    if (i == 0)
      first = taken;
    else if (fastest < 0 || taken < fastest)
      fastest = taken;
  }
  for (size_t i = 0; i < disc_result_count(program); ++i)
    fwrite(disc_result(results, i)->data, 1, bytes_of(disc_result(results, i)), stdout);
  fprintf(stderr, "%lld %lld %lld\n", loaded, first, fastest);
  disc_free_results(results);
  disc_free_program(program);
  return 0;
}
