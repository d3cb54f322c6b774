# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The host program in the LLVM dialect, as far as it is the same for every target: plans, and runs without commands."""
