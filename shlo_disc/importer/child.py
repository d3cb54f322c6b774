# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes of this interpreter that do work which may end them: by a signal, for want of memory, or without an end.

A module with `serve(answer)` in its `main` is the process, a `Child` is its other end. What passes between them is a
header, which is JSON, and bytes: no code, and nothing that is evaluated. Needs neither JAX nor MLIR.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import resource
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

from shlo_disc.importer.reader import frames
from shlo_disc.importer.reader.child_process import OUT_OF_MEMORY, ChildProcess, name_of

Message = tuple[dict[str, Any], bytes]


class ChildEnded(Exception):
    """The process ended before it had answered. status: as `subprocess` gives it; None after the time limit.

    said: the line of its standard error that tells most, or "".
    """

    def __init__(self, status: int | None, said: str = ""):
        self.status, self.said = status, said
        super().__init__(f"{self.how}: {said}" if said else self.how)

    @property
    def how(self) -> str:
        """ "SIGABRT", "exit status 3" or "the time limit"."""
        if self.status is None:
            return "the time limit"
        return name_of(self.status)

    @property
    def wants_memory(self) -> bool:
        """Tells whether it said that it got no memory."""
        return any(words in self.said for words in OUT_OF_MEMORY)


class Child:
    """One process, started when it is first asked, and again after it has ended. Thread-safe; one request at a time."""

    def __init__(self, module: str):
        """module: the name of the module that the process runs."""
        self._lock = threading.Lock()
        self._process = ChildProcess(module)
        _children.add(self)

    def ask(self, header: dict[str, Any], data: bytes = b"", seconds: float | None = None) -> Message:
        """The answer to a request. Raises ChildEnded, after `seconds` as well, and OSError when none can be started."""
        with self._lock:
            if not self._process.is_alive:
                self._end()  # somebody may have ended it since the last time
            requests, answers = self._process.start()
            try:
                with contextlib.suppress(BrokenPipeError):  # then there is no answer either
                    frames.send(requests, json.dumps(header).encode(), data)
                answer, made = frames.receive(answers, 2, seconds)
            except EOFError:
                self._process.wait()
                said = self._end()
                raise ChildEnded(self._process.status, said) from None
            except TimeoutError:
                self._end()
                raise ChildEnded(None) from None
            except BaseException:  # Ctrl-C, for one: the next answer would be to this request
                self._end()
                raise
            return json.loads(answer), made

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Leave the process to the one that this process was forked from."""
        self._lock = threading.Lock()
        self._process.forget()

    def _end(self) -> str:
        """End the process, if there is one; the line of its standard error that tells most."""
        lines = self._process.end()
        telling = [line for line in lines if "LLVM ERROR" in line or "Assertion" in line] or lines
        return telling[-1][:400] if telling else ""


def serve(answer: Callable[[dict[str, Any], bytes], Message]) -> None:
    """Answer requests until there are no more. What anything prints goes to standard error, not among the answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for the answer gets it, too
    limit_resource(resource.RLIMIT_CORE, 0)
    answers = os.dup(1)
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            header, data = frames.receive(0, 2)
            said, made = answer(json.loads(header), data)
            frames.send(answers, json.dumps(said).encode(), made)


def limit_resource(kind: int, limit: int | None) -> None:
    """Set a limit of this process, as far as it may; None for none."""
    most = resource.getrlimit(kind)[1]
    chosen = most if limit is None else limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (chosen, most))


def limit_memory(size: int | None) -> None:
    """Give this process no more than so many bytes beyond those that it has; None: as many as there are."""
    with open("/proc/self/statm", "rb") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    limit_resource(resource.RLIMIT_AS, None if size is None else taken + size)


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _close_all() -> None:
    for child in list(_children):
        child.close()


def _forget_all() -> None:
    for child in list(_children):
        child.forget()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)

__all__ = ["Child", "ChildEnded", "Message", "limit_memory", "limit_resource", "serve"]
