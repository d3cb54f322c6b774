# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of memory that could not be had."""

from __future__ import annotations

from shlo_disc.errors import DiscError


class AllocationError(DiscError, MemoryError):
    """The memory for a call could not be allocated. You can call the executable again.

    `bytes_asked` is the size of the failed allocation in bytes; -1 if the size itself does not fit in 64 bits, or for
    an internal table of the runtime.
    """

    def __init__(self, bytes_asked: int, message: str):
        super().__init__(message)
        self.bytes_asked = bytes_asked
