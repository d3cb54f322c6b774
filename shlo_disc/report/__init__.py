# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report on what a compiled program does at given sizes, kernel by kernel. `synthetic.py` needs no MLIR."""
