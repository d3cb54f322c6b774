// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// forks ARTIFACT COUNT: threads call a program of one f32[n] while the process forks COUNT times, and each child calls
// it, too. Prints how many children did not end in time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shlo_disc.h"

static disc_program_t *program;

static int call(int64_t size) {
  float elements[16] = {0};
  DLTensor argument = {elements, {kDLCPU, 0}, 1, {2 /* a float */, 32, 1}, &size, NULL, 0};
  disc_results_t *results;
  disc_error_t *error = disc_call(program, &argument, 1, &results);
  if (error != NULL)
    return 1;
  disc_free_results(results);
  return 0;
}

static void *repeat(void *seed) {
  for (int64_t i = *(int *)seed;; ++i)
    call(1 + i % 16);
  return NULL;
}

int main(int argc, char **argv) {
  disc_load_options options = {.struct_size = sizeof options, .trust = 1, .threads = 1};
  if (argc != 3 || disc_load(argv[1], &options, &program) != NULL)
    return 1;
  static int seeds[] = {0, 5};
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, repeat, &seeds[i]);
  }
  int failed = 0;
  for (int i = 0; i < atoi(argv[2]) && failed < 4; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(call(1 + i % 16));
    }
    int status;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  printf("%d\n", failed);
  fflush(stdout);
  _exit(0); // the threads go on
}
