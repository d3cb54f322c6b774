# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of the stage `fuse`: groups of StableHLO ops become private functions, one kernel each."""
