// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One argument against its specification, in the same words whatever language the caller speaks.
#pragma once

#include "program.h"

namespace disc {

/// Throws Error(shape) where the rank or a static size differs.
void check_shape(const ArraySpec &spec, const int64_t *shape, size_t rank);

/// Throws Error(shape): the rank is not that of the specification.
[[noreturn]] void fail_rank(const ArraySpec &spec, const int64_t *shape, size_t rank);

/// Throws Error(type); `called` is the name of the type that the argument has.
[[noreturn]] void fail_dtype(const ArraySpec &spec, const std::string &called);

} // namespace disc
