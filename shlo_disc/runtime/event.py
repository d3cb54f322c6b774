# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's Event and Future: what has happened or will, and what comes of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Event:
    """Something that has happened, or will. Thread-safe."""

    def __init__(self, future: concurrent.futures.Future[Any]):
        self._future = future

    def is_ready(self) -> bool:
        """Whether it has happened, or failed."""
        return self._future.done()

    def error(self) -> BaseException | None:
        """What it failed with, None if it did not; waits."""
        return self._future.exception()

    def block_until_ready(self, timeout: float | None = None) -> None:
        """Wait. Raises what it failed with, and TimeoutError after `timeout` seconds."""
        self._future.result(timeout)

    def on_ready(self, callback: Callable[[BaseException | None], None]) -> None:
        """Call `callback` with the failure or None: at once, or later in the thread in which it happens."""
        self._future.add_done_callback(lambda done: callback(done.exception()))


class Future(Event, Generic[Result]):
    """An Event with a result. Can be awaited."""

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result. Raises what it failed with, and TimeoutError after `timeout` seconds."""
        found: Result = self._future.result(timeout)
        return found

    def __await__(self) -> Generator[Any, None, Result]:
        return asyncio.wrap_future(self._future).__await__()


def ready_event() -> Event:
    """An Event that has happened."""
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_result(None)
    return Event(future)
