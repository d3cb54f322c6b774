// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs that JAX's programs call: one handler of XLA's FFI for all of them.
#pragma once

#include <nanobind/nanobind.h>

namespace disc {

namespace nb = nanobind;

void bind_jax_call(nb::module_ &module);

} // namespace disc
