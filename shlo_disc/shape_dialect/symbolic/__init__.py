# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The algebra of symbolic sizes and the facts known of them; no MLIR."""
