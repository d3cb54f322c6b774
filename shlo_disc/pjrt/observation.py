# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin's messages to the ledger of functions: none, unless they are observed."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from shlo_disc.driver.ledger.book import DEFECT, LEDGER, VALUE
from shlo_disc.driver.ledger.watching import WATCH_VARIABLE, Writer
from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.runtime.native_module import CallCount, observe_programs, plugin_programs

if TYPE_CHECKING:
    from .generalize import SymbolicProgram

EXPLAIN_VARIABLE = "JAX_SHLO_DISC_EXPLAIN"

_log = logging.getLogger("shlo_disc.pjrt.generalize")
_writer: Writer | None = None
_has_told_of_packages = False
_ONE_SHAPE = "compiled for one shape only: %s"
_PACKAGES = (
    "functions of installed packages, such as %r of %s, are compiled for one shape too: `python -m shlo_disc watch` "
    "lists them, and the level DEBUG of this logger explains each"
)

plugin_programs().on_clear.append(LEDGER.clear)

if os.environ.get(WATCH_VARIABLE):
    _writer = Writer(os.environ[WATCH_VARIABLE])
    atexit.register(_writer.flush)
    observe_programs(True)


def before_compile(program: bytes, max_programs: int) -> None:
    """Let a program be compiled for its own sizes. Raises RecompileError for one program too many."""
    if not _is_observed(max_programs):
        return
    LEDGER.admit(program, max_programs)
    text = LEDGER.explain(program)
    if text:
        _tell(program, text)


def before_generalizing(program: bytes, max_programs: int) -> None:
    """Let a symbolic program be compiled. Raises RecompileError for one program too many."""
    if _is_observed(max_programs):
        LEDGER.admit(program, max_programs)


def refusal_of(program: bytes, max_programs: int) -> Callable[[Exception], None]:
    """A function that notes and logs why a program is no instance of a symbolic one."""

    def refuse(error: Exception) -> None:
        if not _is_observed(max_programs):
            _log.debug(_ONE_SHAPE, error)
            return
        is_known = isinstance(error, DiscError) and not isinstance(error, CompilerError)
        reason = str(error) if isinstance(error, DiscError) else f"an unexpected error: {error!r}"
        _tell(program, LEDGER.refuse(program, reason, VALUE if is_known else DEFECT))

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


def _tell(program: bytes, text: str) -> None:
    """Log why a program is compiled for one shape: each of the user's functions, and one of installed packages."""
    global _has_told_of_packages
    function = LEDGER.origin(program)
    if not function.package:
        _log.log(_level(), _ONE_SHAPE, text)
        return
    _log.debug(_ONE_SHAPE, text)
    if not _has_told_of_packages:
        _has_told_of_packages = True
        _log.log(_level(), _PACKAGES, function.name, function.package)


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
