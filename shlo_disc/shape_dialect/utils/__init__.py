# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of StableHLO ops, regions and locations; shared by all that read IR."""
