# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's cyclic garbage collector in a compile: it runs more rarely.

A compile makes many objects that live as long as it does, and hardly a cycle. Beside the modules of JAX or PyTorch,
which each full collection walks through, collecting as often as Python does takes a quarter of a compile.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 50_000
"""So many new objects, less those that were released, precede a collection of the young ones in a compile."""

_LOCK = threading.Lock()
_Thresholds = tuple[int, int, int]


class _Compiles:
    """The number of compiles at a time, and the thresholds from before the first of them."""

    count = 0
    before: _Thresholds = (0, 0, 0)
    during: _Thresholds = (0, 0, 0)


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Inside, in any thread, the collector runs after `ALLOCATIONS`; not at all where it does not run outside.

    The thresholds from before come back with the end of the last of all compiles, unless others have been set since.
    """
    with _LOCK:
        _Compiles.count += 1
        if _Compiles.count == 1:
            _begin()
    try:
        yield
    finally:
        with _LOCK:
            _Compiles.count -= 1
            if _Compiles.count == 0 and gc.get_threshold() == _Compiles.during:
                gc.set_threshold(*_Compiles.before)


def _begin() -> None:
    young, *older = _Compiles.before = gc.get_threshold()
    if 0 < young < ALLOCATIONS:
        gc.set_threshold(ALLOCATIONS, *older)
    _Compiles.during = gc.get_threshold()


__all__ = ["ALLOCATIONS", "fewer_collections"]
