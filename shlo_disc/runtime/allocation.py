# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of memory that could not be had."""

from __future__ import annotations

from shlo_disc.errors import DiscError


class AllocationError(DiscError, MemoryError):
    """Memory for a call could not be had. The executable stays usable.

    `bytes_asked` is the size of the allocation that failed, in bytes; -1 when the size itself does not fit 64 bits,
    or is one of the runtime's own tables.
    """

    def __init__(self, bytes_asked: int, message: str):
        super().__init__(message)
        self.bytes_asked = bytes_asked
