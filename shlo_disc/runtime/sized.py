# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory and the work of calls at values of the symbols, for objects that hold a program which knows them."""

from __future__ import annotations

from typing import Any

from .call_results import MemoryStats
from .dims import by_name


class Sized:
    """Methods of values of the symbols, given by name or in one mapping, each that of `_sized`.

    They raise ShapeError for values that the program does not allow.
    """

    @property
    def _sized(self) -> Any:
        """The program that has these methods."""
        raise NotImplementedError

    def seen_shapes(self) -> list[dict[str, int]]:
        """The values of the symbols in recent calls, most recent first: sizes to tune for."""
        found: list[dict[str, int]] = self._sized.seen_shapes()
        return found

    @by_name
    def prepare(self, **dims: int) -> None:
        """Allocate the memory of a call at these values of the symbols now, so that no first call waits for it.

        If you pass the largest sizes that you expect, the first call at every size is as fast as a repeated one.
        """
        self._sized.prepare(**dims)

    @by_name
    def memory(self, **dims: int) -> MemoryStats:
        """The bytes of arena, results and constants of one call at given values of the symbols."""
        found: MemoryStats = self._sized.memory(**dims)
        return found

    def memory_stats(self) -> dict[str, int]:
        """The counters of the device that the program runs on, as `Device.memory_stats` has them: live and peak bytes,
        allocations."""
        found: dict[str, int] = self._sized.memory_stats()
        return found

    @by_name
    def cost_analysis(self, **dims: int) -> dict[str, float]:
        """The "flops" of one call at given values of the symbols, and its "bytes accessed": arguments and results."""
        found: dict[str, float] = self._sized.cost_analysis(**dims)
        return found

    @by_name
    def peak_memory(self, **dims: int) -> int:
        """The bytes that one call allocates (arena and results) at given values of the symbols."""
        found: int = self._sized.peak_memory(**dims)
        return found


__all__ = ["Sized"]
