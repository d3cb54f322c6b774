# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects that JAX's functions call and that only this process has: callbacks to Python, and compiled programs.

JAX keeps them alive with its own programs, and exports no program that it would have to keep something for. Of what is
exported to be compiled by us, the compiled program keeps them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shlo_disc.shape_dialect.compile_state import compiling_with, current_compile


@contextlib.contextmanager
def exporting() -> Iterator[list[Any]]:
    """While a function is exported to be compiled by us: what it calls is added to the list, for the program to keep.

    Nothing is where JAX has lowered the function before, and takes what it has.
    """
    kept: list[Any] = []
    with compiling_with(replace(current_compile(), kept=kept)):
        yield kept


def is_exporting() -> bool:
    """Tells whether a function is being exported to be compiled by us."""
    return current_compile().kept is not None


def keep(ctx: Any, thing: Any) -> None:
    """Keep what is called alive as long as the program that JAX is lowering in `ctx`."""
    kept = current_compile().kept
    if kept is None:
        ctx.module_context.add_keepalive(thing)
    else:
        kept.append(thing)


__all__ = ["exporting", "is_exporting", "keep"]
