# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times on NVIDIA GPUs, of programs that were compiled and recorded before, perhaps on another machine.

What runs there (`run`, `worker`, the backends) needs NumPy and the runtime of shlo_disc; `recording` and `works`,
which make what is run, need the compiler and JAX. docs/gpu.md says how to use them.
"""
