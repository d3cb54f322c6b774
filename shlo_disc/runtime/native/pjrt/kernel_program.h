// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a program has become, as text that frameworks can read.
#pragma once

#include "executable.h"

namespace disc::pjrt {

/// A StableHLO module of the program's signature; its one op, a custom call, names the kernels. Frameworks ask for it
/// whenever they load an executable, and turn it into HLO, which takes long for a program's own ops.
std::string kernel_program(const Code &code);

} // namespace disc::pjrt
