# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A limit on the number of fusions, for finding the one that a fault comes from (as LLVM's `-opt-bisect-limit`)."""

from __future__ import annotations


class Budget:
    """Counts decisions to fuse, in the order in which they are made; past `limit` none is made. None: no limit."""

    def __init__(self, limit: int | None = None):
        self.limit = limit
        self.taken = 0

    def take(self) -> bool:
        """Whether one more may be made; it is counted."""
        if self.limit is not None and self.taken >= self.limit:
            return False
        self.taken += 1
        return True
