# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random chains of ops whose sizes are affine, remainders and quotients of one size, at twelve sizes.

A table of programs as the plugin has it must serve all sizes by at most three programs, each with the results of XLA.
"""
