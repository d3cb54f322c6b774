# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Benchmarks against jax.jit; run one as a module, such as `python -m benchmarks.bert`."""
