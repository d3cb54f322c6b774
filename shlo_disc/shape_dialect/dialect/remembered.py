# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What types and attributes say, read once in a compile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

_KNOWN: ContextVar[dict[Any, dict[Any, Any]] | None] = ContextVar("shlo_disc_known", default=None)
_UNREAD: Any = object()


@contextmanager
def remembering() -> Iterator[None]:
    """Inside, what `remembered` functions have read is kept. Types keep their MLIR context alive: it ends with this."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def remembered(read: Callable[[Key], Result]) -> Callable[[Key], Result]:
    """Makes a function of a type or an attribute read each one once, inside of `remembering`."""

    def reader(key: Key) -> Result:
        known = _KNOWN.get()
        if known is None:
            return read(key)
        own = known.get(read)
        if own is None:
            own = known[read] = {}
        result = own.get(key, _UNREAD)
        if result is _UNREAD:
            result = own[key] = read(key)
        return result

    return reader
