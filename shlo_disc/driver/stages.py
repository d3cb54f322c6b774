# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the stages, for those that do not run them."""

from __future__ import annotations

STAGES = ("import", "annotate", "simplify", "fuse", "plan", "kernels", "host", "codegen")
"""In the order of the pipeline. A stage's name is also that of its dump, of its text and of its row in the timings."""
