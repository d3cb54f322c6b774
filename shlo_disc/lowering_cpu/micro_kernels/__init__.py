# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the inner loops of products, as LLVM IR: one tile of a GEMM at a time, and the transforms of convolutions."""
