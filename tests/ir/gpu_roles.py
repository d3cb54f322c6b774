# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a block that wait for each other: each runs until it has to wait, then another one goes on.

Each has a Python thread, of which one runs at a time. Which one is drawn by a number, so that runs repeat.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Condition = Callable[[], bool]


class _Stopped(BaseException):
    """Ends the other parts after an error."""


class Role:
    """One part. `lanes`: its threads."""

    def __init__(self, roles: Roles, lanes: np.ndarray, body: Callable[[], Any]):
        self.roles, self.lanes = roles, lanes
        self.waits_for: Condition = lambda: True
        self.is_done = False
        self.turn = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, args=(body,), daemon=True)
        self.thread.start()

    def _run(self, body: Callable[[], Any]) -> None:
        self.turn.acquire()
        try:
            if not self.roles.is_stopped:
                body()
        except _Stopped:
            pass
        except BaseException as error:
            self.roles.error = error
        self.is_done = True
        self.roles.back.release()

    def wait(self, condition: Condition) -> None:
        """Let others run until a condition holds."""
        if condition():
            return
        self.waits_for = condition
        self.roles.back.release()
        self.turn.acquire()
        if self.roles.is_stopped:
            raise _Stopped


class Roles:
    """The parts of a block. `goes_on` is asked when all of them wait: whether anything has happened then."""

    def __init__(self, seed: int, goes_on: Condition):
        self.random, self.goes_on = np.random.default_rng(seed), goes_on
        self.back = threading.Semaphore(0)
        self.error: BaseException | None = None
        self.is_stopped = False
        self.current: Role | None = None
        self.all: list[Role] = []

    def run(self, parts: Sequence[tuple[np.ndarray, Callable[[], Any]]]) -> None:
        """All parts to their end. Raises what one of them raises; AssertionError when each waits for another."""
        # What is collected in the thread of a part may ask for locks that the caller holds, who waits.
        collects = gc.isenabled()
        gc.disable()
        self.all = [Role(self, lanes, body) for lanes, body in parts]
        try:
            while waiting := [role for role in self.all if not role.is_done]:
                ready = [role for role in waiting if role.waits_for()]
                if ready:
                    self._switch(ready[self.random.integers(len(ready))])
                else:
                    assert self.goes_on(), "all warpgroups wait, and nothing is under way"
        finally:
            self._stop()
            if collects:
                gc.enable()

    def _switch(self, role: Role) -> None:
        self.current = role
        role.turn.release()
        self.back.acquire()
        if self.error is not None:
            raise self.error

    def _stop(self) -> None:
        self.is_stopped = True
        for role in self.all:
            if not role.is_done:
                role.turn.release()
            role.thread.join()
