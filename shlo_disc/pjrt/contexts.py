# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR contexts that compilations use one after another: making one takes as long as importing a small program."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shlo_disc.shape_dialect.mlir import ir


@dataclass
class _Entry:
    context: ir.Context
    bytes: int = 0


class Contexts:
    """Contexts that are not in use. Thread-safe.

    A context keeps the types and constants of every program that it has seen, so each serves programs of `most` bytes
    together, and is then dropped.
    """

    def __init__(self, most: int = 1 << 20):
        self._most = most
        self._lock = threading.Lock()
        self._idle: list[_Entry] = []

    @contextmanager
    def borrow(self, size: int) -> Iterator[ir.Context]:
        """A context for one program of `size` bytes. It is dropped when the block raises."""
        entry = self._take()
        yield entry.context
        entry.bytes += size
        if entry.bytes < self._most:
            with self._lock:
                self._idle.append(entry)

    def _take(self) -> _Entry:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        from shlo_disc.shape_dialect.dialect.context import make_context

        return _Entry(make_context())
