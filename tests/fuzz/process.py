# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process under test, as its parent sees it: it takes a job, says what it does, and answers, or dies, or hangs.

Before each dangerous step the process sends a text that says what it does, so that the parent knows what a signal
interrupted.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class Process(Generic[Job, Answer]):
    """Started with the first job, and again after a death.

    serve: what it runs, with its end of a connection and `arguments`. limit: seconds for an answer, from the job or,
    with `limits_steps`, from the last text on.
    """

    limits_steps = False
    has_children = False
    """True if it starts processes of its own; else it ends with its parent."""

    def __init__(self, serve: Callable[..., None], *arguments: Any, limit: float) -> None:
        self.job: Job | None = None
        self._serve = serve
        self._arguments = arguments
        self._limit = limit
        self._process: Any = None
        self._connection: Any = None
        self._doing = ""
        self._deadline = 0.0

    def lost(self, kind: str, text: str) -> Answer:
        """The answer of a process that did not give one; `kind` is "signal" or "timeout"."""
        raise NotImplementedError

    def is_last(self, answer: Answer) -> bool:
        """Tells whether the process ends after this answer."""
        return False

    @property
    def connection(self) -> Any:
        """The object that becomes readable when the process has sent a message; see `take`."""
        return self._connection

    def send(self, job: Job) -> None:
        """Have it work on a job."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(
                target=self._serve, args=(theirs, *self._arguments), daemon=not self.has_children
            )
            self._process.start()
            theirs.close()
        self.job = job
        self._doing = "start"
        self._deadline = time.monotonic() + self._limit
        self._connection.send(job)

    def take(self) -> Answer | None:
        """The answer, once it is there; what the process is doing is noted meanwhile."""
        try:
            while self._connection.poll():
                message = self._connection.recv()
                if not isinstance(message, str):
                    if self.is_last(message):
                        self._process.join()
                        self._process = None
                    return message  # type: ignore[no-any-return]
                self._doing = message
                if self.limits_steps:
                    self._deadline = time.monotonic() + self._limit
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            self._process = None
            return self.lost("signal", f"exit status {code} while in {self._doing}:")
        if time.monotonic() > self._deadline:
            self.close()
            return self.lost("timeout", f"no answer after {self._limit:.0f} s of {self._doing}:")
        return None

    def examine(self, job: Job) -> Answer:
        """Send a job and wait for the answer."""
        self.send(job)
        return self.wait()

    def wait(self) -> Answer:
        """The answer to what was sent."""
        while True:
            self._connection.poll(1.0)
            if (answer := self.take()) is not None:
                return answer

    def kill(self) -> None:
        """End the process at once, as a signal in the program under test would."""
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._connection.close()
            self._process.join(2)
            if self._process.is_alive():
                self._process.kill()
            self._process.join()
            self._process = None
