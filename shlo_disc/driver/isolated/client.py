# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Has programs compiled in processes of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from shlo_disc.driver.recovery import with_reproducer
from shlo_disc.errors import CompilerError
from shlo_disc.importer.child import Child, ChildEnded
from shlo_disc.importer.programs import Program
from shlo_disc.options import Options
from shlo_disc.runtime import Artifact
from shlo_disc.shape_dialect.custom_calls import registered_conventions

from .messages import LOGGER, log_again, program_message, read_error

WORKER = f"{__package__}.worker"
"""The module that the processes run."""


class Apart(NamedTuple):
    """A program that another process has compiled: the artifact, the seconds of its stages, and how often it did so."""

    artifact: Artifact
    timings: dict[str, float]
    compile_count: int


def compile_apart(read: Program, options: Options, target: str) -> Apart:
    """Compile a program in another process.

    Raises what compiling it here would raise; and CompilerError, with a reproducer, where the process ends, by a signal
    or at one of the limits that the options set.
    """
    program, data = program_message(read, target)
    header = {
        "program": program,
        "target": target,
        "options": options.to_json(),
        "conventions": registered_conventions(),
        "level": LOGGER.getEffectiveLevel(),
    }
    with _process() as child:
        try:
            said, made = child.ask(header, data, options.compile_seconds)
        except ChildEnded as ended:
            raise with_reproducer(CompilerError(_reason(ended, options)), read, options, target) from None
        except OSError as error:
            raise CompilerError(f"no process that compiles can be started: {error}") from error
    log_again(said["records"])
    if "error" in said:
        if said["error"]["type"] == "MemoryError":
            raise with_reproducer(CompilerError(_too_large(options)), read, options, target)
        raise read_error(said["error"])
    return Apart(Artifact.deserialize(made, trust=True), said["timings"], said["compile_count"])


def _reason(ended: ChildEnded, options: Options) -> str:
    if ended.status is None:
        return f"compiling takes more than {options.compile_seconds:g} s; Options(compile_seconds=...) allows more"
    if ended.wants_memory:
        return _too_large(options)
    return f"the process that compiles ended with {ended}"


def _too_large(options: Options) -> str:
    if options.compile_bytes is None:
        return "compiling takes more memory than there is"
    size = options.compile_bytes / 2**20
    return f"compiling takes more than {size:.0f} MiB of memory; Options(compile_bytes=...) allows more"


_lock = threading.Lock()
_idle: list[Child] = []


@contextmanager
def _process() -> Iterator[Child]:
    """A process for one compile: as many as there are compiles at once, of which some are kept."""
    with _lock:
        child = _idle.pop() if _idle else Child(WORKER)
    is_kept = False
    try:
        yield child
        with _lock:
            is_kept = len(_idle) < (os.cpu_count() or 1)
            if is_kept:
                _idle.append(child)
    finally:
        if not is_kept:
            child.close()


def close_processes() -> None:
    """End the processes that wait for compiles."""
    with _lock:
        idle, _idle[:] = list(_idle), []
    for child in idle:
        child.close()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)

__all__ = ["Apart", "close_processes", "compile_apart"]
