# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warnings about equalities of sizes in a traced function, which JAX takes to be false where it cannot decide them.

JAX raises an error for `n < 4` where sizes go both ways. For `n == 4` it cannot, as `==` of sizes also serves to find
them in dicts: it says False, so the function would silently be compiled for all other sizes only.
"""

from __future__ import annotations

import contextlib
import functools
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from jax import export

_PACKAGE = str(Path(__file__).parents[1])
_SEEN: ContextVar[set[tuple[str, int]] | None] = ContextVar("shlo_disc_equalities", default=None)


@contextlib.contextmanager
def warned_equalities() -> Iterator[None]:
    """While this lasts, an equality in the user's code that JAX does not decide causes a UserWarning at its line."""
    _install()
    token = _SEEN.set(set())
    try:
        yield
    finally:
        _SEEN.reset(token)


@functools.cache
def _install() -> None:
    """Make `==` of symbolic sizes look whether a trace of ours is under way."""
    kind: Any = type(export.symbolic_shape("n")[0])
    plain = kind.__eq__

    def equal(self: Any, other: Any) -> Any:
        result = plain(self, other)
        if result is False and (seen := _SEEN.get()) is not None:
            _check(self, other, seen, sys._getframe(1))
        return result

    kind.__eq__ = equal


def _check(one: Any, other: Any, seen: set[tuple[str, int]], frame: Any) -> None:
    while frame is not None and frame.f_code.co_name in ("__eq__", "__ne__"):
        frame = frame.f_back
    if frame is None or not _is_users(frame.f_code.co_filename):
        return
    place = frame.f_code.co_filename, frame.f_lineno
    if place in seen or _is_decided(one, other):
        return
    seen.add(place)
    text = (
        f"JAX takes {one} == {other} to be false while it traces, and so for every size: compare by <= or >=, choose "
        "by jax.lax.cond with jax.numpy.asarray(size), or state a constraint that decides it (docs/limits.md)"
    )
    warnings.warn_explicit(text, UserWarning, *place)


@functools.cache
def _is_users(file: str) -> bool:
    """Tells whether a file belongs to no installed package, to Python or to this package."""
    installed = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), *site.getsitepackages(), _PACKAGE)
    return not file.startswith(("<frozen", "<__array", *installed)) and "site-packages" not in Path(file).parts


def _is_decided(one: Any, other: Any) -> bool:
    """Tells whether the sizes differ for all values of the symbols, by the constraints that were stated."""
    if not (export.is_symbolic_dim(other) or isinstance(other, int)):
        return True
    token = _SEEN.set(None)  # comparisons use equalities
    try:
        return bool(one < other or one > other)
    except Exception:  # JAX's error for what it cannot decide, or for sizes of different scopes
        return False
    finally:
        _SEEN.reset(token)


__all__ = ["warned_equalities"]
