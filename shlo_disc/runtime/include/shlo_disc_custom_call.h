// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interface of C functions that a user registers with shlo_disc.register_custom_call(name, function): plain C, to
// be included where such a function is compiled.
//
// A function reads the operands, writes the results and returns NULL, or a message (a string that lives as long as the
// process) that the call of the program then raises. It is called from the thread that runs the program, without
// Python's lock; programs that run in several threads call it from several threads at once.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A contiguous, row-major array. The sizes are those of this run, whatever symbols the program has.
typedef struct ShloDiscBuffer {
  void *data;        // not null-terminated, not aligned to more than its elements when it is an argument of the program
  int64_t rank;      // number of dimensions
  const int64_t *dims;
  const char *dtype; // "f32", "bf16", "i64", "u8", "i1" (a byte), "c64", ...
} ShloDiscBuffer;

/// An attribute of the call: `count` elements of type `dtype`, or, when `dtype` is "string", `count` characters, a zero
/// behind them.
typedef struct ShloDiscAttribute {
  const char *name;
  const char *dtype;
  int64_t count;
  const void *data;
} ShloDiscAttribute;

typedef struct ShloDiscCall {
  int64_t struct_size; // sizeof(ShloDiscCall) of the caller; later versions only add fields at the end
  int64_t operand_count;
  const ShloDiscBuffer *operands;
  int64_t result_count;
  const ShloDiscBuffer *results;
  int64_t attribute_count;
  const ShloDiscAttribute *attributes; // sorted by name
} ShloDiscCall;

typedef const char *(*ShloDiscCustomCall)(const ShloDiscCall *call);

#ifdef __cplusplus
}
#endif
