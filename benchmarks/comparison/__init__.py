# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures shlo_disc and other compilers on three streams of shapes; docs/comparison.md has the results.

python -m benchmarks.comparison                              # all streams, all backends that are installed
python -m benchmarks.comparison encoder --backends ours jit
python -m benchmarks.comparison --page                       # the tables of docs/comparison.md, from the results
"""
