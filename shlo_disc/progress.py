# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who wants to know how far a compile is: `watching` is told of each stage that runs in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watch = Callable[[str, float | None], None]
"""Told the name of a stage and None when it begins, and its seconds when it has ended."""

_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch | None) -> Iterator[None]:
    """Have `watch` told of the stages that run inside, in this thread; None: nobody."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def tell(stage: str, seconds: float | None = None) -> None:
    """A stage begins, or has ended after so many seconds."""
    watch = _WATCH.get()
    if watch is not None:
        watch(stage, seconds)


__all__ = ["Watch", "tell", "watching"]
