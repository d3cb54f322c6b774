# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PJRT's Event and Future: what has happened or will, and what comes of it."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from shlo_disc.errors import DeviceError

Result = TypeVar("Result")


class Event:
    """Something that has happened or will happen. Thread-safe."""

    def __init__(self, future: concurrent.futures.Future[Any]):
        self._future = future

    def __repr__(self) -> str:
        if not self.is_ready():
            return f"<{type(self).__name__}, not ready>"
        error = self.error()
        return f"<{type(self).__name__}, {'ready' if error is None else f'failed: {error!r}'}>"

    def is_ready(self) -> bool:
        """Tells whether it has happened, or failed."""
        return self._future.done()

    def error(self) -> BaseException | None:
        """Wait, and return the error with which it failed, or None."""
        return self._future.exception()

    def block_until_ready(self, timeout: float | None = None) -> None:
        """Wait. Raises the error with which it failed, and TimeoutError after `timeout` seconds."""
        self._future.result(timeout)

    def on_ready(self, callback: Callable[[BaseException | None], None]) -> None:
        """Call `callback` with the error or None: at once, or later in the thread in which it happens."""
        self._future.add_done_callback(lambda done: callback(done.exception()))


class Future(Event, Generic[Result]):
    """An Event with a result. You can `await` it."""

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result. Raises the error with which it failed, and TimeoutError after `timeout` seconds."""
        found: Result = self._future.result(timeout)
        return found

    def __await__(self) -> Generator[Any, None, Result]:
        import asyncio  # whoever awaits has it already; others need not

        return asyncio.wrap_future(self._future).__await__()


class DeviceEvent(Event):
    """The event that the elements of a Buffer on a device are there."""

    _INTERVAL = 50e-6
    """Seconds between questions, where there is a limit to the waiting."""

    def __init__(self, buffer: Any):
        self._buffer = buffer

    def is_ready(self) -> bool:
        """Tells whether they are, or the work before them has failed."""
        try:
            return bool(self._buffer.is_ready())
        except DeviceError:
            return True

    def error(self) -> BaseException | None:
        """The error that the work before them has failed with, None if it did not; waits."""
        try:
            self._buffer.block_until_ready()
        except DeviceError as error:
            return error
        return None

    def block_until_ready(self, timeout: float | None = None) -> None:
        """Wait. Raises DeviceError, and TimeoutError after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while end is not None and not self.is_ready():
            if time.monotonic() > end:
                raise TimeoutError(f"the elements are not there after {timeout} seconds")
            time.sleep(self._INTERVAL)
        self._buffer.block_until_ready()

    def on_ready(self, callback: Callable[[BaseException | None], None]) -> None:
        """Call `callback` with the failure or None: at once, or later in a thread of its own."""
        if self.is_ready():
            callback(self.error())
        else:
            threading.Thread(target=lambda: callback(self.error()), name="shlo_disc-event", daemon=True).start()


def device_event(buffer: Any) -> DeviceEvent:
    """The Event that the elements of a Buffer on a device are there."""
    return DeviceEvent(buffer)


def ready_event() -> Event:
    """An Event that has happened."""
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_result(None)
    return Event(future)
