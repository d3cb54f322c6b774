/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Compiled programs from C: load an artifact, ask for its sizes, run it. C99; link with libshlo_disc_runtime.so.
 *
 * A function that can fail returns a disc_error_t *, NULL where it succeeded; what it gives out is then written, and is
 * left alone otherwise. The caller frees every error, program, plan and set of results, each with its function; NULL may
 * be freed. A plan and results keep what they need of their program, so they may be freed in any order.
 *
 * NULL for any other parameter is a ValueError that names it, unless its function says otherwise: options may be NULL, and
 * arrays of no elements. Of a NULL object, a function that returns no error gives NULL, 0 for a count and -1 for bytes.
 *
 * All functions may be called from several threads at a time, on one program or one plan too; an object must not be
 * freed while another thread uses it. Strings are UTF-8, end in a zero and live as long as the object they are of.
 * Programs are for the processor; every tensor lies in the host's memory.
 */
#ifndef SHLO_DISC_H
#define SHLO_DISC_H

#include <stddef.h>
#include <stdint.h>

#include "shlo_disc_custom_call.h"

/* Tensors are DLPack's. Where dlpack.h has been included, or lies at <dlpack/dlpack.h>, they are its own. */
#ifndef DLPACK_DLPACK_H_
#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
enum { kDLCPU = 1 };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };

typedef struct {
  int32_t device_type; /* kDLCPU */
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code; /* kDLInt, kDLFloat, ..., others as in DLPack */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major without gaps */
  uint64_t byte_offset;
} DLTensor;
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define DISC_API_VERSION 0

typedef struct disc_error disc_error_t;
typedef struct disc_program disc_program_t;
typedef struct disc_plan_object disc_plan_t;
typedef struct disc_results disc_results_t;

/* DISC_API_VERSION of the library. */
uint32_t disc_version(void);

/* ---- Errors ---- */

/* The name of Python's exception: "ArtifactError", "ShapeError", "ArgumentTypeError", "AllocationError",
 * "CustomCallError", "ValueError", "OSError", "RuntimeError". */
const char *disc_error_kind(const disc_error_t *error);

/* The path of the argument that is wrong, such as "args[0]", or of the result given to disc_run, such as "result[1]"; NULL where
 * it is not one of them. */
const char *disc_error_argument(const disc_error_t *error);

/* The stable code, such as "DISC-S103", whose page `python -m shlo_disc why DISC-S103` prints and docs/errors has; "" for
 * "OSError" and "RuntimeError". */
const char *disc_error_code(const disc_error_t *error);

/* What went wrong. Of a NULL error, the kind and the code are "" and the text is "no error". */
const char *disc_error_text(const disc_error_t *error);

void disc_free_error(disc_error_t *error);

/* ---- Programs ---- */

/* Set struct_size to sizeof(disc_load_options) and everything else to 0 for the defaults. */
typedef struct disc_load_options {
  size_t struct_size;
  int32_t trust;        /* not 0: the artifact's native code may run, for you know who made it; without, none is loaded */
  int32_t threads;      /* at most 4096; 0: one a processor that the process may use */
  int64_t memory_limit; /* most bytes for arenas and results at a time, into which each block of packed or copied weights
                           has to fit; 0: no limit */
  int64_t cache_limit;  /* most bytes of freed memory kept for later calls; 0: 1 GiB */
  int64_t memo_bytes;   /* most bytes of remembered shapes; 0: 4 MiB */
  int64_t borrow;       /* not 0: disc_load_bytes copies nothing that it can read where it lies; see there */
  const char *cpu;      /* of an artifact compiled for levels of processors, the one to run, such as "x86-64-v3"; NULL or "": the
                           best that this processor has, and for an artifact without levels, which is for the
                           processor that compiled it, the only choice */
} disc_load_options;

/* Loads an artifact from a file. It is mapped, so that processes which load it share its constants; it must not be changed
 * in place while the program is in use, and may be deleted or replaced by another one. Programs with neither threads, memory_limit nor cache_limit share the process's threads
 * and memory; the others have their own. Errors: OSError for a file that cannot be read; ArtifactError for damage, another
 * format, a missing `trust`, another processor, a custom call that is not registered; ValueError for options, and for
 * programs of several devices; AllocationError. */
disc_error_t *disc_load(const char *path, const disc_load_options *options, disc_program_t **program);

/* The same from `size` bytes. They are copied, unless `borrow` is set: then they must live, and stay as they are, as long
 * as the program and everything made from it. Constants are read in place where the bytes begin at a multiple of 64. */
disc_error_t *disc_load_bytes(const void *bytes, size_t size, const disc_load_options *options,
                              disc_program_t **program);

void disc_free_program(disc_program_t *program);

/* The name of the function that was compiled. */
const char *disc_name(const disc_program_t *program);

/* The level of processors whose code runs, such as "x86-64-v3"; "" for a program without levels. */
const char *disc_level(const disc_program_t *program);

/* How many arguments a call takes (those that are bound do not count), and how many results it has. */
size_t disc_argument_count(const disc_program_t *program);
size_t disc_result_count(const disc_program_t *program);

/* Set struct_size before the call. */
typedef struct disc_array_info {
  size_t struct_size;
  const char *path;             /* as errors name it: "args[0]['w']" */
  const char *dtype;            /* "float32", "bfloat16", "bool" */
  DLDataType type;              /* an i1 has 8 bits and a byte; types below 8 bits have a byte for each element */
  size_t rank;
  const int64_t *sizes;         /* rank of them; -1 where the size is symbolic */
  const char *const *size_texts; /* rank of them: "b", "2*s + 1", "768" */
  const char *name;             /* as the user's function has it: "params['w']"; "" where it is not known, as of results */
} disc_array_info;

/* The specification of an argument or result. Error: ValueError where there is none of that number. */
disc_error_t *disc_describe_argument(const disc_program_t *program, size_t index, disc_array_info *info);
disc_error_t *disc_describe_result(const disc_program_t *program, size_t index, disc_array_info *info);

/* Fixes the first `count` arguments, as serving does with weights: they are copied, and right-hand sides of products are
 * packed once for all shapes. The tensors may be changed or freed afterwards. `bound` takes the other arguments; it is
 * freed apart from `program`. Errors: as disc_call. */
disc_error_t *disc_bind(const disc_program_t *program, const DLTensor *arguments, size_t count, disc_program_t **bound);

/* ---- Calls ---- */

/* Checks the sizes of all arguments, and gives the sizes of the results. `dims`: the sizes of the arguments that a call
 * takes, one after the other, `count` numbers in all. Errors: ShapeError for sizes that the signature does not allow;
 * ValueError for another number of sizes, and for programs whose results' sizes depend on data. */
disc_error_t *disc_plan(const disc_program_t *program, const int64_t *dims, size_t count, disc_plan_t **plan);

/* The same for values of the symbols, in the order of disc_symbol: the sizes of the arguments follow from them. Error:
 * ValueError for another number of values, and for programs with bound arguments, as well. */
disc_error_t *disc_plan_symbols(const disc_program_t *program, const int64_t *values, size_t count, disc_plan_t **plan);

/* The name of a symbol that the arguments' sizes determine, such as "b"; NULL where there is none of that number. */
const char *disc_symbol(const disc_program_t *program, size_t index);

/* The sizes of an argument that a run takes, as many as its rank; NULL where there is no such argument. */
const int64_t *disc_plan_argument_shape(const disc_plan_t *plan, size_t index);

/* Bytes of temporary memory that a run takes from the program's allocator. */
int64_t disc_plan_arena_bytes(const disc_plan_t *plan);

/* The sizes of a result, as many as its rank, and its bytes; NULL and -1 where there is no such result. */
const int64_t *disc_plan_result_shape(const disc_plan_t *plan, size_t index);
int64_t disc_plan_result_bytes(const disc_plan_t *plan, size_t index);

void disc_free_plan(disc_plan_t *plan);

/* Runs the program at a plan's sizes, into memory of the caller's. Results must be row-major without gaps and must not
 * overlap an argument or each other; those that are not aligned to 64 bytes are computed aside and copied. Everything is
 * checked before anything is written. Errors: ArgumentTypeError (number of tensors, dtype, device), ShapeError, ValueError
 * (results that overlap or have gaps), AllocationError, CustomCallError. */
disc_error_t *disc_run(const disc_plan_t *plan, const DLTensor *arguments, size_t argument_count, DLTensor *results,
                       size_t result_count);

/* Runs the program on arguments of any admissible sizes, into memory of the program's allocator. Errors: as disc_run. */
disc_error_t *disc_call(const disc_program_t *program, const DLTensor *arguments, size_t count,
                        disc_results_t **results);

/* A result, row-major without gaps and aligned to 64 bytes; NULL where there is none of that number. It and its memory
 * live as long as `results`; the memory may be written. */
const DLTensor *disc_result(const disc_results_t *results, size_t index);

void disc_free_results(disc_results_t *results);

/* ---- The process ---- */

/* Products of matrices for which a program has no kernels of its own run as plain loops, unless there is a BLAS: Python
 * takes SciPy's, and with the same one from C all bits are the same. Give it before programs run; the last one counts. */

/* Functions in Fortran's way: arguments by address, integers of 32 bits, columns first. */
typedef void (*disc_function)(void);

typedef struct disc_blas {
  size_t struct_size;
  disc_function sgemm, dgemm, sgemv, dgemv;
} disc_blas;

/* Errors: ValueError where struct_size is not set, or a function is NULL. */
disc_error_t *disc_set_blas(const disc_blas *functions);

/* Those of a shared library, such as "libopenblas.so.0" or the one in `scipy.libs`, found as dlopen does; with them its
 * LAPACK, where it has all of it, without which programs that call LAPACK are refused. The library stays open.
 * Errors: OSError where it cannot be opened, ValueError where it has no BLAS of 32-bit integers. */
disc_error_t *disc_open_blas(const char *library);

/* Has programs that are loaded from now on call `function` for the custom call `name`. Error: ValueError for NULL. */
disc_error_t *disc_register_custom_call(const char *name, ShloDiscCustomCall function);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
