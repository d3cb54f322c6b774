# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that JAX's functions call and that only this process has: callbacks to Python, and compiled programs.

JAX keeps them alive with its own programs, and exports no program that it would have to keep something for. Of what is
exported to be compiled by us, the compiled program keeps them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_kept: ContextVar[list[Any] | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def exporting() -> Iterator[list[Any]]:
    """While a function is exported to be compiled by us: what it calls is added to the list, for the program to keep.

    Nothing is where JAX has lowered the function before, and takes what it has.
    """
    kept: list[Any] = []
    token = _kept.set(kept)
    try:
        yield kept
    finally:
        _kept.reset(token)


def is_exporting() -> bool:
    """Tells whether a function is being exported to be compiled by us."""
    return _kept.get() is not None


def keep(ctx: Any, thing: Any) -> None:
    """Keep what is called alive as long as the program that JAX is lowering in `ctx`."""
    kept = _kept.get()
    if kept is None:
        ctx.module_context.add_keepalive(thing)
    else:
        kept.append(thing)


__all__ = ["exporting", "is_exporting", "keep"]
