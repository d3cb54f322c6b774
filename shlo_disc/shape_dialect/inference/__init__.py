# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `annotate` stage: the sizes of every value, by one rule an op."""
