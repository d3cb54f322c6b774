// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makers of kernels that are in files of their own.
#pragma once

#include "op.h"

namespace disc::interpreter {

Kernel fourier_transform(const Op &op); // fourier.cpp
Kernel rng_bit_generator(const Op &op); // random_bits.cpp

} // namespace disc::interpreter
