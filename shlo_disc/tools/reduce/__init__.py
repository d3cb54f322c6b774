# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`shlo_disc reduce`: a small program that fails as a large one does.

`search.reduce(program, failing)` is the search; `edits.py` and `sizes.py` say what is left out; `failing.py` asks
whether a program still fails, in a process that may die of it (`worker.py`).
"""
