// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file of weights: the elements of a program's first arguments, one after the other.
#pragma once

#include "shlo_disc.h"

#include <string>

namespace disc::triton {

/// The program with as many first arguments bound as the file has. Throws Failure, also where the file's size is not that
/// of some first arguments.
disc_program_t *bound_to_file(const disc_program_t *program, const std::string &path);

} // namespace disc::triton
