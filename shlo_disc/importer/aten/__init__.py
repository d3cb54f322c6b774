# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's exported graphs as StableHLO: one small function for each op of ATen, in files by family.

`graphs.py` walks a graph, `table.py` holds the functions by the names of the overloads that they translate.
"""
