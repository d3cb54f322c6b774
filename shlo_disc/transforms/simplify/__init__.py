# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of the stage `simplify`: StableHLO to less StableHLO, using shape facts."""
