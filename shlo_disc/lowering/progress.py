# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Progress of a compile: `watching` calls a function for each stage, and `showing` keeps a line on a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO

from shlo_disc.shape_dialect.compile_state import Progress, Watch, compiling_with, current_compile

AFTER = 2.0
"""Seconds that a compile takes before it has a line."""

EVERY = 0.25
"""Seconds between two changes of the line."""


@contextmanager
def watching(watch: Watch | None) -> Iterator[None]:
    """Call `watch` for the stages that run inside, in this thread; None: nobody, and `showing` may show them."""
    with compiling_with(replace(current_compile(), watch=watch)):
        yield


def tell(stage: str, seconds: float | None = None) -> None:
    """A stage begins, or has ended after so many seconds."""
    watch, shown = current_compile().watch, current_compile().progress
    if watch is not None:
        watch(stage, seconds)
    if shown is not None and seconds is None:
        shown.stage, shown.done, shown.total = stage, 0, 0


def expect(kernels: int) -> None:
    """The stage that runs makes so many kernels."""
    shown = current_compile().progress
    if shown is not None:
        shown.total = kernels


def advance() -> None:
    """Counts one more of the expected kernels."""
    shown = current_compile().progress
    if shown is not None:
        shown.done += 1


# ---- the line -----------------------------------------------------------------------------------------------------


class _Line(Progress):
    """A line on a terminal about a compile. Its thread writes it; the compile changes its fields."""

    def __init__(self, stream: TextIO, name: str):
        super().__init__()
        self._stream, self._name = stream, name
        self._start = time.monotonic()
        self._ended = threading.Event()
        self._width = 0
        self._thread = threading.Thread(target=self._run, name="shlo_disc-progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Erase the line, if there is one."""
        self._ended.set()
        self._thread.join()

    def text(self) -> str:
        """The line, such as `compiling f: kernels, 3 of 17, 4 s`."""
        what = f"compiling {self._name}" if self._name else "compiling"
        count = f", {self.done} of {self.total}" if self.total else ""
        return f"{what}: {self.stage}{count}, {time.monotonic() - self._start:.0f} s"

    def _run(self) -> None:
        try:
            if self._ended.wait(AFTER):
                return
            self._write(self.text())
            while not self._ended.wait(EVERY):
                self._write(self.text())
            self._write("")
            self._stream.write("\r")
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads the stream any more, or it is closed
            return

    def _write(self, text: str) -> None:
        """Overwrite the line. Blanks erase the rest of it, for notebooks know no other way."""
        text = text[: _columns(self._stream) - 1]
        self._stream.write(f"\r{text.ljust(self._width)}")
        self._stream.flush()
        self._width = len(text)


_SHOWN = threading.Lock()
"""Held by the compile that has a line: one at a time."""


@contextmanager
def showing(name: str, wanted: bool = True) -> Iterator[None]:
    """Show how far the compile inside is, in one line of standard error, once it has taken `AFTER` seconds.

    That line is erased in the end. There is none where nobody looks, where somebody is `watching`, and inside another
    `showing`. name: of what is compiled, or "".
    """
    stream = sys.stderr
    is_shown = wanted and current_compile().watch is None and is_looked_at(stream) and _SHOWN.acquire(blocking=False)
    if not is_shown:
        yield
        return
    line = _Line(stream, name)
    try:
        with compiling_with(replace(current_compile(), progress=line)):
            yield
    finally:
        line.end()
        _SHOWN.release()


def is_looked_at(stream: TextIO | None) -> bool:
    """Tells whether a line that changes can be seen: on a terminal that has a cursor, or in a notebook."""
    if type(stream).__module__.startswith("ipykernel."):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO | None) -> bool:
    """Tells whether somebody may be looking at a stream of the process, which has been closed where it is None."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # what somebody has put in its place, or a stream that is closed
        return False


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


__all__ = ["Watch", "advance", "expect", "is_looked_at", "is_terminal", "showing", "tell", "watching"]
