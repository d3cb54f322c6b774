# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process of this interpreter behind pipes, which may end at any time. Needs neither JAX nor MLIR."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from typing import IO

OUT_OF_MEMORY = ("out of memory", "bad_alloc", "Allocation failed", "MemoryError", "bad alloc")
"""Texts in the last messages of a process that got no memory."""

_SAID = 1 << 16
"""Bytes of standard error that are read, from its end."""


class ChildProcess:
    """One process at a time, which runs a module. Not thread-safe: who uses it has a lock."""

    def __init__(self, module: str):
        self.module = module
        self.status = 0
        """Exit status of the last process that was ended, as `subprocess` gives it."""
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    @property
    def is_started(self) -> bool:
        """Tells whether there is one; it may have ended meanwhile."""
        return self._process is not None

    @property
    def is_alive(self) -> bool:
        """Tells whether there is one that has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process; 0 where there is none."""
        return 0 if self._process is None else self._process.pid

    def start(self) -> tuple[int, int]:
        """The streams of requests and of answers. Raises OSError, TypeError or ValueError where none starts."""
        if self._process is None:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
            # The command is fixed: this interpreter and a module of this package.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            )
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101 - both are pipes
        return self._process.stdin.fileno(), self._process.stdout.fileno()

    def wait(self) -> None:
        """Wait until it has ended by itself, as one whose answers have ended is about to."""
        if self._process is not None:
            self._process.wait()

    def end(self) -> list[str]:
        """End the process, if there is one; the lines of its standard error, those with nothing in them left out."""
        process, self._process = self._process, None
        if process is None or self._said is None:
            return []
        _close_pipes(process)
        process.kill()
        self.status = process.wait()
        with self._said as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _SAID))
            text = file.read().decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.strip()]

    def forget(self) -> None:
        """Leave the process to the one that this process was forked from."""
        process, self._process = self._process, None
        if process is not None:
            _close_pipes(process)
            process.returncode = 0  # this process cannot wait for it


def name_of(status: int) -> str:
    """An exit status in words: "SIGABRT", or "exit status 3"."""
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


__all__ = ["OUT_OF_MEMORY", "ChildProcess", "name_of"]
