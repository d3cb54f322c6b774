# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What StableHLO ops, regions and locations say; shared by all that read IR."""
