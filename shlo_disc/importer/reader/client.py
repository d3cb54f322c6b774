# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading what comes from outside, in a process that may die of it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import threading

from shlo_disc.errors import ProgramError, ReaderError
from shlo_disc.options import READ_BYTES_VARIABLE, READ_SECONDS_VARIABLE

from . import frames
from .child_process import OUT_OF_MEMORY, ChildProcess, name_of
from .formats import BYTECODE_MAGIC
from .limits import Limits

_START = 60  # seconds that the process may take to start


class Reader:
    """A process that reads programs, started when it is needed, and again when it is gone. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = ChildProcess(f"{__package__}.process")

    def read(self, task: str, data: bytes, what: str, limits: Limits) -> bytes:
        """The result of a task of `tasks.TASKS` on bytes; `what` is the name that messages use for them.

        Raises ProgramError when they are damaged or reach a limit, ReaderError when the process cannot be started.
        """
        granted = limits.for_program(len(data))
        header = {"task": task, "what": what, "seconds": granted.seconds, "bytes": granted.bytes}
        outcome, answer = self._ask(json.dumps(header).encode(), data, granted)
        if outcome == b"read":
            return answer
        if outcome == b"refused":
            raise ProgramError(answer.decode())
        if outcome == b"memory":
            raise _too_large(what, granted)
        ended = json.loads(answer)
        raise _ended(ended["status"], ended["said"], data, what, granted)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Leave the process to the one that this process was forked from."""
        self._lock = threading.Lock()
        self._process.forget()

    def _ask(self, header: bytes, data: bytes, limits: Limits) -> list[bytes]:
        with self._lock:
            if self._process.is_started:
                with contextlib.suppress(EOFError, BrokenPipeError):  # somebody may have ended it since the last time
                    return self._exchange(header, data, limits)
            self._end()
            try:
                return self._exchange(header, data, limits)
            except (EOFError, BrokenPipeError):
                raise ReaderError(_cannot_start(self._end())) from None

    def _exchange(self, header: bytes, data: bytes, limits: Limits) -> list[bytes]:
        requests, answers = self._started()
        try:
            frames.send(requests, header, data)
            return frames.receive(answers, 2, _START + 2 * limits.clock_seconds)
        except (EOFError, BrokenPipeError):
            raise
        except TimeoutError:
            self._end()
            raise ReaderError("the process that reads programs does not answer; it was ended") from None
        except BaseException:  # Ctrl-C, for one: the next answer would be to this request
            self._end()
            raise

    def _started(self) -> tuple[int, int]:
        """The streams of requests and of answers."""
        try:
            return self._process.start()
        except (OSError, TypeError, ValueError) as error:  # the latter two where there is no such interpreter
            raise ReaderError(_cannot_start(str(error))) from None

    def _end(self) -> str:
        """End the process, if there is one; the last line that it has written to standard error."""
        if not self._process.is_started:
            return ""
        lines = self._process.end()
        return lines[-1] if lines else f"it ended with {name_of(self._process.status)}"


def _cannot_start(reason: str) -> str:
    return f"programs from outside are read in a process of their own, which cannot be started: {reason}"


def _too_large(what: str, limits: Limits) -> ProgramError:
    return ProgramError(
        f"{what} cannot be parsed: that takes more than {limits.bytes / 2**20:.0f} MiB of memory; "
        f"Options(read_bytes=...) or {READ_BYTES_VARIABLE} allow more"
    )


def _too_slow(what: str, limits: Limits) -> ProgramError:
    return ProgramError(
        f"{what} cannot be parsed: that takes more than {limits.seconds:.0f} s; Options(read_seconds=...) or "
        f"{READ_SECONDS_VARIABLE} allow more"
    )


def _ended(status: int, said: str, data: bytes, what: str, limits: Limits) -> ProgramError:
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return _too_slow(what, limits)
    if any(words in said for words in OUT_OF_MEMORY):
        return _too_large(what, limits)
    ended = f"its reader ended with {name_of(status)}"
    cause = f"the bytecode is damaged ({ended})" if data[:4] == BYTECODE_MAGIC else ended
    return ProgramError(f"{what} cannot be parsed: {cause}")


READER = Reader()
"""The reader of this process."""

atexit.register(READER.close)
os.register_at_fork(after_in_child=READER.forget)

__all__ = ["READER", "Reader"]
