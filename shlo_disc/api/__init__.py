# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The API that users call: `compile`, `jit`, `load`."""
