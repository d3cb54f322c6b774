# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measurements against other compilers: `python -m benchmarks`; see docs/benchmarks.md."""
