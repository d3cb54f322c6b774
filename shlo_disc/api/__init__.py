# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What users call: `compile`, `jit`, `load`."""
