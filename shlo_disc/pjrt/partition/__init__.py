# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs over several devices become the program that each device runs (SPMD), with collectives between them.

An op whose operands' shardings it can carry over to its results works on parts; for every other op, operands are
gathered and each device computes all of it. Manual computations (`shard_map`) are taken as they are.
"""

from __future__ import annotations

from .partitioner import partition

__all__ = ["partition"]
