// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "argument_checks.h"

#include "core/error.h"

namespace disc {

namespace {

std::string sizes_text(const int64_t *shape, size_t rank) {
  std::string text = "(";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (rank == 1 ? ",)" : ")");
}

[[noreturn]] void fail_shape(const ArraySpec &spec, const int64_t *shape, size_t rank, const std::string &what) {
  throw Error(ErrorKind::shape, what + spec.shape_text() + " and called with " + sizes_text(shape, rank));
}

} // namespace

void fail_rank(const ArraySpec &spec, const int64_t *shape, size_t rank) {
  fail_shape(spec, shape, rank, "Rank mismatch for " + spec.path + ": expected ");
}

void check_shape(const ArraySpec &spec, const int64_t *shape, size_t rank) {
  if (rank != spec.shape.size())
    fail_rank(spec, shape, rank);
  for (size_t i = 0; i < rank; ++i)
    if (spec.shape[i].size >= 0 && spec.shape[i].size != shape[i])
      fail_shape(spec, shape, rank,
                 "Shape mismatch for " + spec.path + ".shape[" + std::to_string(i) +
                     "] (expected same constant): expected ");
}

void fail_dtype(const ArraySpec &spec, const std::string &called) {
  throw Error(ErrorKind::type, "Dtype mismatch for " + spec.path + ": expected " +
                                   std::string(info(spec.dtype).numpy) + " and called with " + called);
}

} // namespace disc
