# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The branches of a module on sizes that `torch.export` decides for sizes of 2 or more, without a record of it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch._guards import SLoc
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ShapeGuard

_LIBRARIES = (*(os.path.dirname(file) + os.sep for file in (torch.__file__, __file__)), "<string>", "<eval_with_key>")
"""Beginnings of the names of files whose branches are not the user's: PyTorch's, ours, and what PyTorch generates."""

_LOCK = threading.RLock()
"""Held while PyTorch's methods are replaced: of two threads, one would put back that of the other."""


@contextmanager
def recorded_branches() -> Iterator[None]:
    """A context in which comparisons of sizes, as Python decides them in the user's code, become guards of the trace.

    PyTorch has none for `n == 1`, which it takes to be false, so the program would return the result of the other
    branch. Comparisons in PyTorch's own code, such as those of broadcasting, are left out: its ops are right for sizes
    of 0 and 1. Dynamo, with `strict=True`, does not ask in this way, and of comparisons with 0 nothing is left to
    record: SymPy's symbols of sizes are positive.
    """
    thread = threading.get_ident()

    def decide(self: torch.SymBool) -> bool:
        outcome = plain(self)
        if threading.get_ident() == thread and not _caller().startswith(_LIBRARIES):
            _record(self.node, outcome)
        return outcome

    def place(self: ShapeEnv, *args: Any, **options: Any) -> SLoc:
        found = plain_place(self, *args, **options)
        own = _line() if threading.get_ident() == thread and found.maybe_user_loc is None else None
        return found if own is None else SLoc(found.framework_loc, own)

    with _LOCK:
        plain, plain_place = torch.SymBool.__bool__, ShapeEnv._get_sloc
        torch.SymBool.__bool__, ShapeEnv._get_sloc = decide, place
        try:
            yield
        finally:
            torch.SymBool.__bool__, ShapeEnv._get_sloc = plain, plain_place


def _caller() -> str:
    """The file of the code that asks a SymBool, directly or by the operators of SymInt, for its value."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == torch.__file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename


def _line() -> str | None:
    """The line of the user's code that is traced, as "model.py:4"; None outside of `forward`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        if frame.f_code.co_name == "export" and frame.f_code.co_filename.startswith(_LIBRARIES[1]):
            return None
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _record(node: Any, outcome: bool) -> None:
    """Add what a branch has taken to hold to the guards of its environment, where that is none of them."""
    environment = node.shape_env
    holds = environment.replace(node.expr if outcome else sympy.Not(node.expr))
    is_of_sizes = holds.free_symbols and all(environment.is_unbacked_symint(s) is False for s in holds.free_symbols)
    if is_of_sizes and all(guard.expr != holds for guard in environment.guards):
        environment.guards.append(ShapeGuard(holds, SLoc(None, _line()), False))


__all__ = ["recorded_branches"]
