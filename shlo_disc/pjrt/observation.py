# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin's messages to the ledger of functions: none, unless they are observed."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from shlo_disc.driver.ledger.book import DEFECT, DEVICES, LEDGER, VALUE
from shlo_disc.driver.ledger.watching import WATCH_VARIABLE, Writer
from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.runtime.native_module import CallCount, observe_programs, plugin_programs

if TYPE_CHECKING:
    from .generalize import SymbolicProgram

EXPLAIN_VARIABLE = "JAX_SHLO_DISC_EXPLAIN"

_log = logging.getLogger("shlo_disc.pjrt.generalize")
_writer: Writer | None = None

plugin_programs().on_clear.append(LEDGER.clear)

if os.environ.get(WATCH_VARIABLE):
    _writer = Writer(os.environ[WATCH_VARIABLE])
    atexit.register(_writer.flush)
    observe_programs(True)


def before_compile(program: bytes, max_programs: int, reason: str = "") -> None:
    """Let a program be compiled for its own sizes. reason: why it is, where that is known.

    Raises RecompileError for one program too many.
    """
    if not _is_observed(max_programs):
        return
    if reason:
        LEDGER.refuse(program, reason, DEVICES)
    LEDGER.admit(program, max_programs)
    text = LEDGER.explain(program)
    if text:
        _log.log(_level(), "compiled for one shape only: %s", text)


def before_generalizing(program: bytes, max_programs: int) -> None:
    """Let a symbolic program be compiled. Raises RecompileError for one program too many."""
    if _is_observed(max_programs):
        LEDGER.admit(program, max_programs)


def refusal_of(program: bytes, max_programs: int) -> Callable[[Exception], str]:
    """A function that notes why a program is no instance of a symbolic one, and returns all that is known of it."""
    if not _is_observed(max_programs):
        return str

    def refuse(error: Exception) -> str:
        is_known = isinstance(error, DiscError) and not isinstance(error, CompilerError)
        reason = str(error) if isinstance(error, DiscError) else f"an unexpected error: {error!r}"
        return LEDGER.refuse(program, reason, VALUE if is_known else DEFECT)

    return refuse


def note_symbolic(program: bytes, symbolic: SymbolicProgram, max_programs: int) -> None:
    """Note a symbolic program of a function."""
    if _is_observed(max_programs):
        LEDGER.note_symbolic(program, symbolic.explain_miss)


def after_compile(program: bytes, how: str, seconds: float) -> CallCount:
    """Note how a program was served; returns what counts its calls."""
    count = CallCount()
    LEDGER.note(program, how, seconds, count)
    if _writer:
        _writer.changed()
    return count


def _level() -> int:
    return logging.WARNING if os.environ.get(EXPLAIN_VARIABLE) else logging.DEBUG


def _is_observed(max_programs: int) -> bool:
    """Tells whether anybody wants to know of the programs; from the first time on, of all."""
    wanted = bool(max_programs or _writer or os.environ.get(EXPLAIN_VARIABLE))
    if wanted:
        observe_programs(True)
    return wanted


__all__ = [
    "EXPLAIN_VARIABLE", "after_compile", "before_compile", "before_generalizing", "note_symbolic", "refusal_of",
]  # fmt: skip
