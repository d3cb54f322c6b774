# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc reduce`: a small program that fails as a large one does.

`reduce(program, failing)` is the search (`search.py`); `edits.py` and `sizes.py` say what is left out; `failing.py`
asks whether a program still fails, in a process that may die of it (`worker.py`).
"""

from __future__ import annotations

from .failing import Command, CompilerFailure, Failing, Failure
from .search import Reduced, reduce

__all__ = ["Command", "CompilerFailure", "Failing", "Failure", "Reduced", "reduce"]
