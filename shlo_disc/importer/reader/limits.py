# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits on reading a program."""

from __future__ import annotations

from typing import NamedTuple

from shlo_disc.options import Options

_PATIENCE = 10  # seconds of the clock for each of the processor
_MORE_SECONDS = 1e-6  # for each byte of the program
_MORE_BYTES = 32  # likewise


class Limits(NamedTuple):
    """seconds: of the processor, and one more for each megabyte of the program. bytes: of memory, and 32 more for each
    byte of the program."""

    seconds: float
    bytes: int

    @classmethod
    def of(cls, options: Options | None = None) -> Limits:
        """The limits given by the options, or else by the environment."""
        chosen = options or Options()
        return cls(chosen.seconds_to_read, chosen.bytes_to_read)

    def for_program(self, size: int) -> Limits:
        """Those for a program of `size` bytes."""
        return Limits(self.seconds + size * _MORE_SECONDS, self.bytes + size * _MORE_BYTES)

    @property
    def clock_seconds(self) -> float:
        """The seconds to wait: the process may have to share the processors with many others."""
        return _PATIENCE * self.seconds


__all__ = ["Limits"]
