// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A shared library as the process's BLAS and LAPACK.
#pragma once

namespace disc {

/// Takes the BLAS of a library that dlopen gave, which must stay open, and its LAPACK where it has all functions. False
/// when it lacks one of BLAS: nothing is taken then.
bool install_blas(void *library);

/// What a library lacks that `install_blas` does not take.
inline constexpr char kNoBlas[] = " has no BLAS of 32-bit integers: sgemm_, dgemm_, sgemv_ and dgemv_, or the same names "
                                  "behind scipy_";

} // namespace disc
