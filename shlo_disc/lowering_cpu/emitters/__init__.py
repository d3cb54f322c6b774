# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a kernel of each kind of fusion, as MLIR: loops over vectors, on the frame of a function over memrefs."""
